'use strict';
// Comfort only: every page is complete without this file.
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  const byId = (id) => document.getElementById(id);
  const make = (name, members = {}, ...children) => {
    const made = Object.assign(document.createElement(name), members);
    made.append(...children);
    return made;
  };

  // Copy buttons, unhidden where the browser can copy; a live region says that it was done.
  const said = make('p', { className: 'visually-hidden', role: 'status' });
  document.body.append(said);
  if (navigator.clipboard) {
    for (const button of all('[data-copy], [data-copy-from]')) {
      button.hidden = false;
      button.addEventListener('click', async () => {
        const source = button.dataset.copyFrom;
        await navigator.clipboard.writeText(source ? byId(source).textContent : button.dataset.copy);
        button.dataset.done = '';
        said.textContent = document.body.dataset.copied;
        setTimeout(() => { delete button.dataset.done; said.textContent = ''; }, 2000);
      });
    }
  }

  // Show and hide a password.
  for (const row of all('.field__row[data-show]')) {
    const input = row.querySelector('input');
    const word = make('span', { textContent: row.dataset.show });
    const what = make('span', { className: 'visually-hidden', textContent: ` ${row.dataset.what}` });
    const button = make('button', { type: 'button', className: 'button' }, word, what);
    button.addEventListener('click', () => {
      const hidden = input.type === 'text';
      input.type = hidden ? 'password' : 'text';
      word.textContent = hidden ? row.dataset.show : row.dataset.hide;
    });
    // Sent as what it is, so that password managers find it.
    input.form.addEventListener('submit', () => { input.type = 'password'; });
    row.append(button);
  }

  // Menus close on Escape, which gives the focus back, and on a click outside.
  const menus = all('details[data-menu]');
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    for (const menu of menus.filter((one) => one.open && one.contains(document.activeElement))) {
      menu.open = false;
      menu.querySelector('summary').focus();
    }
  });
  document.addEventListener('click', (event) => {
    for (const menu of menus) if (menu.open && !menu.contains(event.target)) menu.open = false;
  });

  // What takes long says so while it is sent, and is sent once.
  for (const form of all('form[data-busy]')) {
    const status = make('p', { className: 'muted', role: 'status' });
    form.append(status);
    form.addEventListener('submit', (event) => {
      if (status.textContent) event.preventDefault();
      else status.textContent = form.dataset.busy;
    });
    // The way back shows the page as it was left.
    window.addEventListener('pageshow', () => { status.textContent = ''; });
  }

  // Times in the viewer's zone, in the format of the page's language; the title stays UTC.
  const day = { year: 'numeric', month: 'short', day: 'numeric' };
  const minute = { ...day, hour: 'numeric', minute: '2-digit', timeZoneName: 'short' };
  for (const time of all('time[data-local]')) {
    const at = new Date(time.dateTime);
    const format = time.dataset.local === 'minute' ? minute : day;
    if (!Number.isNaN(at.getTime())) time.textContent = at.toLocaleString(document.documentElement.lang, format);
  }

  // Field check: the form posted to itself with X-Check answers what is wrong, and saves nothing.
  const tell = (form, input, problem) => {
    const id = `error-${input.name}`;
    const others = (input.getAttribute('aria-describedby') || '').split(' ').filter((one) => one && one !== id);
    byId(id)?.remove();
    if (problem) {
      const before = make('span', { className: 'visually-hidden', textContent: `${form.dataset.check} ` });
      input.before(make('p', { id, className: 'field__error' }, make('span', {}, before, problem)));
      input.setAttribute('aria-invalid', 'true');
      others.unshift(id);
    } else {
      input.removeAttribute('aria-invalid');
    }
    if (others.length) input.setAttribute('aria-describedby', others.join(' '));
    else input.removeAttribute('aria-describedby');
  };
  for (const form of all('form[data-check]')) {
    form.addEventListener('change', async (event) => {
      const input = event.target;
      if (!input.matches('.input, .textarea') || input.type === 'password') return;
      const body = new URLSearchParams(new FormData(form));
      for (const secret of all('input[type=password]', form)) body.delete(secret.name);
      try {
        const answer = await fetch(form.action, { method: 'POST', body, headers: { 'X-Check': '1' } });
        if (answer.ok) tell(form, input, (await answer.json()).fields[input.name]);
      } catch { /* The server looks again when the form is sent. */ }
    });
  }

  // Tabs that are wider than the screen show the current one.
  for (const current of all('.tabs a[aria-current]')) {
    const bar = current.closest('.tabs');
    const { left, right } = bar.getBoundingClientRect();
    const place = current.getBoundingClientRect();
    if (place.right > right || place.left < left) bar.scrollLeft += place.right - right;
  }
})();
