'use strict';
// Comfort only: the button "Preview" does the same, and colours can be typed.
(() => {
  const form = document.getElementById('page-form');

  // A colour picker beside each colour; the text is what is sent.
  for (const text of form.querySelectorAll('[data-colour]')) {
    const row = document.createElement('div');
    const picker = document.createElement('input');
    row.className = 'field__row';
    picker.type = 'color';
    picker.className = 'colour';
    picker.setAttribute('aria-label', text.labels[0].textContent);
    text.before(row);
    row.append(text, picker);
    const follow = () => { if (/^#[0-9a-f]{6}$/i.test(text.value)) picker.value = text.value; };
    text.addEventListener('input', follow);
    follow();
    picker.addEventListener('input', () => { text.value = picker.value; });
  }

  let waiting;
  let last = 0;
  const draw = async () => {
    const number = ++last;
    const body = new URLSearchParams(new FormData(form));
    body.set('preview', 'yes');
    try {
      const answer = await fetch(form.action, { method: 'POST', body });
      const drawn = new DOMParser().parseFromString(await answer.text(), 'text/html').getElementById('preview');
      if (drawn && number === last) document.getElementById('preview').replaceWith(drawn);
    } catch { /* The button does it. */ }
  };
  form.addEventListener('input', () => {
    clearTimeout(waiting);
    waiting = setTimeout(draw, 400);
  });
})();
