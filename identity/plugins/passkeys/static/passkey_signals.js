'use strict';
// Tells password managers which passkeys the service knows, where browsers can (WebAuthn Level 3 §5.1.10).
(() => {
  const signal = async (method, details) => {
    try {
      await window.PublicKeyCredential?.[method]?.(details);
    } catch { /* The password manager keeps what it has. */ }
  };

  for (const { dataset } of document.querySelectorAll('[data-passkey-unknown]')) {
    signal('signalUnknownCredential', JSON.parse(dataset.passkeyUnknown));
  }

  for (const { dataset } of document.querySelectorAll('[data-passkey-account]')) {
    const { account, rpId, userIds, name, displayName, credentialIds } = JSON.parse(dataset.passkeyAccount);
    // Without any passkey the service has no user handle: this tab remembers it, to say that the last one is removed.
    const key = `passkeys of ${account}`;
    let handles = userIds;
    try {
      if (handles.length) sessionStorage.setItem(key, JSON.stringify(handles));
      else {
        handles = JSON.parse(sessionStorage.getItem(key) || '[]');
        sessionStorage.removeItem(key);
      }
    } catch { /* Storage is switched off. */ }
    for (const userId of handles) {
      signal('signalAllAcceptedCredentials', { rpId, userId, allAcceptedCredentialIds: credentialIds });
      if (credentialIds.length) signal('signalCurrentUserDetails', { rpId, userId, name, displayName });
    }
  }
})();
