'use strict';
// The search as an overlay, on Ctrl-K or "/". Without this file the form in the top bar leads to the search page.
(() => {
  const form = document.querySelector('form[data-search]');
  if (!form || !window.HTMLDialogElement) return;
  const typed = form.querySelector('input[name=q]');

  const dialog = document.createElement('dialog');
  dialog.className = 'palette';
  dialog.setAttribute('aria-label', typed.getAttribute('aria-label'));
  const own = form.cloneNode(true);
  own.className = 'search';
  own.querySelectorAll('kbd').forEach((key) => key.remove());
  const input = own.querySelector('input[name=q]');
  input.removeAttribute('id');
  const results = document.createElement('div');
  results.className = 'palette__results';
  // It is there from the start: a status that comes with its text is not announced.
  const status = document.createElement('p');
  status.className = 'visually-hidden';
  status.setAttribute('role', 'status');
  dialog.append(own, results, status);
  document.body.append(dialog);

  const links = () => Array.from(results.querySelectorAll('a'));
  const open = () => {
    if (!dialog.open) dialog.showModal();
    input.focus();
    input.select();
    if (!results.firstChild) load();
  };

  // The hits are those of the search page. An answer that comes after a newer question is dropped.
  let asked = 0;
  const load = async () => {
    const number = (asked += 1);
    const address = `${form.getAttribute('action')}?${new URLSearchParams({ q: input.value.slice(0, 200) })}`;
    let found = null;
    try {
      const response = await fetch(address, { headers: { Accept: 'text/html' } });
      const page = new DOMParser().parseFromString(await response.text(), 'text/html');
      found = page.getElementById('search-results');
    } catch { /* Offline: the form still leads to the page. */ }
    if (number !== asked || !found) return;
    found.removeAttribute('id');
    for (const heading of found.querySelectorAll('[id]')) heading.id = `palette-${heading.id}`;
    for (const section of found.querySelectorAll('[aria-labelledby]')) {
      section.setAttribute('aria-labelledby', `palette-${section.getAttribute('aria-labelledby')}`);
    }
    const count = found.querySelector('[role=status]');
    count.remove();
    results.replaceChildren(document.adoptNode(found));
    status.textContent = input.value ? count.textContent : '';
  };
  let pause = 0;
  input.addEventListener('input', () => {
    clearTimeout(pause);
    pause = setTimeout(load, 120);
  });

  // Arrow keys move between the field and the hits. Enter follows a hit; in the field it opens the page with all hits.
  dialog.addEventListener('keydown', (event) => {
    const all = [input, ...links()];
    const at = all.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && at >= 0) {
      event.preventDefault();
      all[(at + step + all.length) % all.length].focus();
    } else if (at > 0 && event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) {
      input.focus();
    }
  });
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });

  // Not on focus: Tab must be able to pass the field. Who types into it gets the page with the hits.
  typed.addEventListener('click', open);
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target.closest('input, textarea, select, [contenteditable]');
    const isShortcut = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'k';
    if (isShortcut || (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey)) {
      event.preventDefault();
      open();
    }
  });
})();
