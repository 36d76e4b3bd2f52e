// A device with openid-client: node openid_client_device.mjs ISSUER CLIENT_ID. The first line has the code.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const found = createRequire(`${process.env.OIDC_PROVIDER}/`).resolve('openid-client')
const client = await import(pathToFileURL(found))
const [issuer, clientId] = process.argv.slice(2)
const config = await client.discovery(new URL(issuer), clientId, undefined, client.None(), {
  execute: [client.allowInsecureRequests],
})
const device = await client.initiateDeviceAuthorization(config, { scope: 'openid offline_access' })
console.log(device.user_code)
const tokens = await client.pollDeviceAuthorizationGrant(config, device)
const renewed = await client.refreshTokenGrant(config, tokens.refresh_token)
console.log(JSON.stringify({ sub: tokens.claims().sub, renewed: Boolean(renewed.access_token) }))
