"""Cryptography and outbound requests: secrets, keys, tokens of other issuers, and the HTTP client."""

from identity.crypto.base64url import decode as decode_base64url
from identity.crypto.base64url import encode as encode_base64url
from identity.crypto.certificates import ClientCertificate
from identity.crypto.jwk_sets import JwkPublicKey, jwk_thumbprint
from identity.crypto.jwt import InvalidTokenSignature, MalformedToken, UnverifiedToken
from identity.crypto.jwt import sign as sign_jwt
from identity.crypto.secrets import constant_time_equal, find_matching_digest, new_token, token_digest
from identity.crypto.signature_keys import ExternalKey, InvalidKey, PrivateKey, PublicKey
from identity.domain.signature_algorithms import SignatureAlgorithm
from identity.outbound_http import ForbiddenDestination, OutboundHttpClient
from identity.password_hashing import PasswordHasher
from identity.signers import CreatedKey, ExternalSigner, SignerUnavailable

__all__ = [
    "ClientCertificate",
    "CreatedKey",
    "ExternalKey",
    "ExternalSigner",
    "ForbiddenDestination",
    "InvalidKey",
    "InvalidTokenSignature",
    "JwkPublicKey",
    "MalformedToken",
    "OutboundHttpClient",
    "PasswordHasher",
    "PrivateKey",
    "PublicKey",
    "SignatureAlgorithm",
    "SignerUnavailable",
    "UnverifiedToken",
    "constant_time_equal",
    "decode_base64url",
    "encode_base64url",
    "find_matching_digest",
    "jwk_thumbprint",
    "new_token",
    "sign_jwt",
    "token_digest",
]
