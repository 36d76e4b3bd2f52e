// What must hold of every page, looked at in the browser. Most functions return sentences about what is wrong.
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
  // What is clipped away is there for screen readers alone.
  const clipped = (one) => one !== null && (getComputedStyle(one).clipPath !== 'none' || clipped(one.parentElement));
  const shown = (one) => one.checkVisibility({ visibilityProperty: true }) && !clipped(one);
  const named = (one) => {
    const rest = one.id ? `#${one.id}` : one.className && typeof one.className === 'string' ? `.${one.className}` : '';
    return `<${one.localName}${rest}> ${one.textContent.trim().replace(/\s+/g, ' ').slice(0, 40)}`;
  };

  const layout = (phone) => {
    const wrong = [];
    const page = document.documentElement;
    if (page.scrollWidth > innerWidth) wrong.push(`the page is ${page.scrollWidth} wide in a window of ${innerWidth}`);
    for (const one of all('body *').filter(shown)) {
      if (one.closest('svg, datalist, option')) continue;
      const style = getComputedStyle(one);
      // The panel of a menu lies over the page.
      if (one.matches('.menu')) continue;
      const clips = style.overflowX !== 'visible' || ['INPUT', 'SELECT', 'TEXTAREA'].includes(one.tagName);
      if (!clips && style.display !== 'inline' && one.clientWidth && one.scrollWidth > one.clientWidth + 1) {
        wrong.push(`${named(one)}: ${one.scrollWidth} wide in ${one.clientWidth}`);
      }
      const around = one.parentElement.getBoundingClientRect();
      const own = one.getBoundingClientRect();
      const scrolls = ['auto', 'scroll'].includes(getComputedStyle(one.parentElement).overflowX);
      const free = scrolls || ['absolute', 'fixed'].includes(style.position) || getComputedStyle(one.parentElement).display === 'inline';
      if (!free && own.width && (own.right > around.right + 1 || own.left < around.left - 1)) {
        wrong.push(`${named(one)} sticks out of ${named(one.parentElement)}`);
      }
      if (clips && style.textOverflow !== 'ellipsis' && style.overflowX === 'hidden' && one.scrollWidth > one.clientWidth + 1) {
        wrong.push(`${named(one)} is cut off`);
      }
    }
    for (const one of all('a[href], button, input, select, textarea, summary').filter(shown)) {
      if (one.type === 'hidden' || one.tabIndex < 0) continue;
      const { width, height } = (one.closest('.check') || one).getBoundingClientRect();
      const inText = one.localName === 'a' && getComputedStyle(one).display === 'inline'
        && one.parentElement.textContent.trim() !== one.textContent.trim();
      const control = one.matches('.button, .input, .select, .textarea, .choice, .menu > summary')
        && !one.matches('.button--link, .button--icon');
      const least = control && (phone || document.body.matches('.login')) ? 44 : 24;
      if (!inText && (height < least || width < 24)) {
        wrong.push(`${named(one)} is a target of ${Math.round(width)} × ${Math.round(height)}, not ${least}`);
      }
    }
    return wrong;
  };

  const structure = () => {
    const wrong = [];
    const ids = all('[id]').map((one) => one.id);
    for (const id of ids.filter((one, place) => ids.indexOf(one) !== place)) wrong.push(`the id ${id} stands twice`);
    for (const name of ['for', 'aria-describedby', 'aria-labelledby', 'aria-controls', 'form', 'list', 'headers']) {
      for (const one of all(`[${name}]`)) {
        for (const id of one.getAttribute(name).split(/\s+/)) {
          if (!ids.includes(id)) wrong.push(`${named(one)}: ${name} names ${id}, which is not there`);
        }
      }
    }
    for (const one of all('a[href^="#"]')) {
      if (!ids.includes(one.hash.slice(1))) wrong.push(`${named(one)} leads to ${one.hash}, which is not there`);
    }
    const levels = all('h1, h2, h3, h4, h5, h6').filter(shown).map((one) => Number(one.localName[1]));
    if (levels.filter((one) => one === 1).length !== 1) wrong.push(`headings: ${levels}`);
    levels.forEach((one, place) => {
      if (one > (levels[place - 1] || one) + 1) wrong.push(`heading levels have a gap: ${levels}`);
    });
    const primary = all('.button--primary, .button--danger');
    if (primary.length > 1) wrong.push(`${primary.length} main buttons`);
    const focused = all('[autofocus]');
    if (focused.length > 1) wrong.push(`${focused.length} elements with autofocus`);
    if (focused.length === 1 && document.activeElement !== focused[0]) {
      wrong.push(`autofocus at ${named(focused[0])}, but the focus is at ${named(document.activeElement)}`);
    }
    if (all('[style]').length) wrong.push(`style attributes: ${all('[style]').map(named)}`);
    return wrong;
  };

  // Each address is asked for once, however many pages lead there.
  const links = async (known) => {
    const wrong = [];
    const addresses = new Set(all('a[href]').filter((one) => one.origin === location.origin)
      .map((one) => one.href.split('#')[0]).filter((one) => !known.includes(one)));
    for (const address of addresses) {
      // It leads off to somebody who is not there.
      if (new URL(address).pathname.startsWith('/login/upstream/')) continue;
      // The documentation is not built here; test_help_links.py compares its pages.
      if (new URL(address).pathname.startsWith('/docs/')) continue;
      const answer = await fetch(address, { redirect: 'manual' });
      if (answer.type !== 'opaqueredirect' && !answer.ok && new URL(address).pathname !== location.pathname) {
        wrong.push(`${address} answers ${answer.status}`);
      }
    }
    return { wrong, asked: [...addresses] };
  };

  // What Tab should reach in this order, by its place among all elements. Tab enters an open popover after its button.
  const places = () => {
    const every = all('*');
    const found = all('a[href], button, input, select, textarea, summary, [tabindex]')
      .filter((one) => one.tabIndex >= 0 && !one.disabled && one.type !== 'hidden' && one.checkVisibility())
      .filter((one) => one.type !== 'radio' || one.checked || !all('input:checked').some((other) => other.name === one.name));
    const popover = (one) => one.closest(':popover-open');
    return found
      .filter((one) => !popover(one))
      .flatMap((one) => [one, ...found.filter((other) => popover(other) && popover(other) === one.popoverTargetElement)])
      .map((one) => every.indexOf(one));
  };

  // Where the focus is, and how it shows.
  const focus = () => {
    const one = document.activeElement;
    const style = getComputedStyle(one);
    const place = one === document.body ? -1 : all('*').indexOf(one);
    const { top, bottom } = one.getBoundingClientRect();
    return {
      place,
      name: named(one),
      ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
      inView: bottom > 0 && top < innerHeight,
    };
  };

  // Where it is before each key but the first, when all that follows from the last one is done; and now.
  const watchFocus = () => {
    window.seenFocus = [];
    addEventListener('keydown', () => window.seenFocus.push(focus()), { capture: true });
  };
  const watched = () => [...window.seenFocus.slice(1), focus()];

  return { layout, structure, links, places, watchFocus, watched };
})()
