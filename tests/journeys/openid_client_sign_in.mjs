// An application with openid-client: node openid_client_sign_in.mjs ISSUER SETTINGS. It prints the address that the user
// opens, reads the address to which the service sends the user back, and prints what it got.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline/promises'
import { pathToFileURL } from 'node:url'

const found = createRequire(`${process.env.OIDC_PROVIDER}/`).resolve('openid-client')
const client = await import(pathToFileURL(found))
const [issuer, text] = process.argv.slice(2)
const { clientId, redirectUri, key, uses } = JSON.parse(text)
const curve = { name: 'ECDSA', namedCurve: 'P-256' }
const signingKey = { key: await crypto.subtle.importKey('jwk', key, curve, false, ['sign']), kid: key.kid }
const metadata = { id_token_signed_response_alg: 'RS256', authorization_signed_response_alg: 'RS256' }
const config = await client.discovery(new URL(issuer), clientId, metadata, client.PrivateKeyJwt(signingKey), {
  execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks],
})
if (uses.includes('jarm')) client.useJwtResponseMode(config)
if (uses.includes('hybrid')) client.useCodeIdTokenResponseType(config)
const options = uses.includes('dpop')
  ? { DPoP: client.getDPoPHandle(config, await client.randomDPoPKeyPair('ES256')) }
  : undefined

const verifier = client.randomPKCECodeVerifier()
const nonce = client.randomNonce()
const state = client.randomState()
let parameters = new URLSearchParams({
  redirect_uri: redirectUri,
  scope: 'openid offline_access',
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: 'S256',
  nonce,
  state,
})
if (uses.includes('jar')) {
  parameters = (await client.buildAuthorizationUrlWithJAR(config, parameters, signingKey)).searchParams
}
const url = uses.includes('par')
  ? await client.buildAuthorizationUrlWithPAR(config, parameters, options)
  : client.buildAuthorizationUrl(config, parameters)
console.log(url.href)

const lines = createInterface({ input: process.stdin })
const [returned] = await lines[Symbol.asyncIterator]().next().then(({ value }) => [new URL(value)])
lines.close()
const checks = { pkceCodeVerifier: verifier, expectedNonce: nonce, expectedState: state, idTokenExpected: true }
const tokens = await client.authorizationCodeGrant(config, returned, checks, undefined, options)
const { sub } = tokens.claims()
const userinfo = await client.fetchUserInfo(config, tokens.access_token, sub, options)
const renewed = await client.refreshTokenGrant(config, tokens.refresh_token, undefined, options)
const exchanged = await client.genericGrantRequest(
  config,
  'urn:ietf:params:oauth:grant-type:token-exchange',
  {
    subject_token: renewed.access_token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    scope: 'openid',
  },
  options,
)
const introspected = await client.tokenIntrospection(config, exchanged.access_token)
await client.tokenRevocation(config, renewed.access_token)
const revoked = await client.tokenIntrospection(config, exchanged.access_token)
console.log(
  JSON.stringify({
    sub: userinfo.sub,
    type: tokens.token_type,
    exchanged: exchanged.token_type,
    active: [introspected.active, revoked.active],
    bound: 'cnf' in introspected,
  }),
)
