'use strict';
// Asks the browser for a passkey, and sends what it answers with the form in which the question stands.
(() => {
  const bytes = (text) =>
    Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (one) => one.charCodeAt(0));
  const text = (buffer) =>
    btoa(Array.from(new Uint8Array(buffer), (one) => String.fromCharCode(one)).join(''))
      .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  const known = (list) => (list || []).map((one) => ({ ...one, id: bytes(one.id) }));

  // As the options of Web Authentication want it, and its answers are told in JSON (Level 3 §5.1.8, §5.1.10).
  const asked = (options) => {
    const publicKey = { ...options, challenge: bytes(options.challenge) };
    if (options.user) publicKey.user = { ...options.user, id: bytes(options.user.id) };
    publicKey[options.user ? 'excludeCredentials' : 'allowCredentials'] =
      known(options.user ? options.excludeCredentials : options.allowCredentials);
    return publicKey;
  };
  const told = (credential) => {
    const response = {};
    for (const name of ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle']) {
      if (credential.response[name]) response[name] = text(credential.response[name]);
    }
    if (credential.response.getTransports) response.transports = credential.response.getTransports();
    return JSON.stringify({ id: credential.id, rawId: text(credential.rawId), type: credential.type, response });
  };

  // After a sign-in with a password: the browser saves a passkey without a question, or the page goes on without one.
  for (const answer of document.querySelectorAll('input[data-passkey-upgrade]')) {
    const create = async () => {
      const abilities = await window.PublicKeyCredential?.getClientCapabilities?.();
      if (!abilities?.conditionalCreate) return;
      const publicKey = asked(JSON.parse(answer.dataset.options));
      const signal = AbortSignal.timeout(5000);
      const credential = await navigator.credentials.create({ publicKey, signal, mediation: 'conditional' });
      if (credential) answer.value = told(credential);
    };
    create().catch(() => { /* No passkey was saved. */ }).finally(() => answer.form.submit());
  }

  for (const answer of document.querySelectorAll('input[data-passkey]')) {
    const { form, dataset } = answer;
    const problem = form.querySelector('[role=alert][hidden]');
    const publicKey = asked(JSON.parse(dataset.options));
    let waiting = null;

    const ask = async (more) => {
      waiting?.abort();
      waiting = new AbortController();
      const credential = await navigator.credentials[dataset.passkey]({ publicKey, signal: waiting.signal, ...more });
      answer.value = told(credential);
      form.submit();
    };

    const say = (words) => {
      problem.textContent = words;
      problem.hidden = false;
    };

    form.addEventListener('submit', async (event) => {
      // Another language is asked for by the same form.
      if (event.submitter?.name) return;
      event.preventDefault();
      if (!window.PublicKeyCredential) {
        say(dataset.unable);
        return;
      }
      problem.hidden = true;
      try {
        await ask({});
      } catch (error) {
        if (error.name === 'InvalidStateError') say(dataset.present);
        else say(error.name === 'NotAllowedError' || error.name === 'AbortError' ? dataset.stopped : dataset.unable);
      }
    });

    // The browser offers passkeys in the field of the login name, where it can.
    const field = document.querySelector('input[autocomplete~=webauthn]');
    if (field && 'autofill' in dataset) {
      window.PublicKeyCredential?.isConditionalMediationAvailable?.()
        .then((can) => can && ask({ mediation: 'conditional' }))
        .catch(() => { /* Nothing was chosen, or the button was pressed. */ });
    }
  }
})();
