"""Default names of new passkeys."""

from collections.abc import Collection, Mapping

from identity.api.pages import Translator, describe_user_agent, gettext_lazy
from identity.plugins.passkeys.passkey import Passkey

#: Authenticators by AAGUID, if their name says more than the device on which the passkey was created.
_AUTHENTICATOR_NAMES: Mapping[str, str] = {
    "ea9b8d66-4d01-1d21-3ce4-b6b48cb575d4": "Google Password Manager",
    "fbfc3007-154e-4ecc-8c0b-6e020557d7bd": "iCloud Keychain",
    "dd4ec289-e01d-41c9-bb89-70fa845d4bf2": "iCloud Keychain",
    "08987058-cadc-4b81-b6e1-30de50dcbe96": "Windows Hello",
    "9ddd1817-af5a-4672-a2b9-3e3dd95000a9": "Windows Hello",
    "6028b017-b1d4-4c02-b4b3-afcdafc96bb2": "Windows Hello",
    "bada5566-a7aa-401f-bd96-45619a55120d": "1Password",
    "d548826e-79b4-db40-a3d8-11116f7e8349": "Bitwarden",
    "531126d6-e717-415c-9320-3d9aa6981239": "Dashlane",
    "fdb141b2-5d84-443e-8a35-4698c205a502": "KeePassXC",
    "53414d53-554e-4700-0000-000000000000": "Samsung Pass",
}
_ROAMING_TRANSPORTS = frozenset({"ble", "nfc", "usb"})
_SECURITY_KEY = gettext_lazy("Security key")


def suggest_name(passkey: Passkey, user_agent: str, translator: Translator, existing_names: Collection[str]) -> str:
    """The authenticator's name, else its type or the device on which it was created; numbered if the name is taken."""
    if passkey.aaguid in _AUTHENTICATOR_NAMES:
        name = _AUTHENTICATOR_NAMES[passkey.aaguid]
    elif passkey.transports and _ROAMING_TRANSPORTS.issuperset(passkey.transports):
        name = translator.gettext_plain(_SECURITY_KEY)
    else:
        name = str(describe_user_agent(user_agent, translator).unescape())
    number = 2
    numbered = name
    while numbered in existing_names:
        numbered, number = f"{name} {number}", number + 1
    return numbered
