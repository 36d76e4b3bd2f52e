'use strict';
// Comfort only: the button "Preview" does the same.
(() => {
  const form = document.getElementById('page-form');
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
