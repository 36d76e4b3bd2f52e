// An application that registers itself with openid-client: node openid_client_registration.mjs ISSUER TOKEN REDIRECT_URI.
// It prints the address that the user opens, reads the address to which the service sends the user back, and prints what
// it got.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline/promises'
import { pathToFileURL } from 'node:url'

const found = createRequire(`${process.env.OIDC_PROVIDER}/`).resolve('openid-client')
const client = await import(pathToFileURL(found))
const [issuer, initialAccessToken, redirectUri] = process.argv.slice(2)
const metadata = {
  client_name: 'Reports',
  redirect_uris: [redirectUri],
  application_type: 'native',
  token_endpoint_auth_method: 'client_secret_post',
}
const config = await client.dynamicClientRegistration(new URL(issuer), metadata, undefined, {
  initialAccessToken,
  execute: [client.allowInsecureRequests],
})

const verifier = client.randomPKCECodeVerifier()
const url = client.buildAuthorizationUrl(config, {
  redirect_uri: redirectUri,
  scope: 'openid',
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: 'S256',
})
console.log(url.href)
const answer = await createInterface({ input: process.stdin }).question('')
const tokens = await client.authorizationCodeGrant(config, new URL(answer), { pkceCodeVerifier: verifier })

const registered = config.clientMetadata()
const headers = { Authorization: `Bearer ${registered.registration_access_token}` }
const read = await fetch(registered.registration_client_uri, { headers })
const deleted = await fetch(registered.registration_client_uri, { method: 'DELETE', headers })
console.log(JSON.stringify({ sub: tokens.claims().sub, name: (await read.json()).client_name, deleted: deleted.status }))
process.exit()
