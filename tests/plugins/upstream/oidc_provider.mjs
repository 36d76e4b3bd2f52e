// An OpenID provider that is not ours: oidc-provider from npm, with its own pages for trying it out.
// node oidc_provider.mjs PORT CLIENT, where CLIENT is the client's metadata as JSON; says "ready" once it listens.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const found = createRequire(`${process.env.OIDC_PROVIDER}/`).resolve('oidc-provider')
const { Provider } = await import(pathToFileURL(found))
const [port, client] = process.argv.slice(2)

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [JSON.parse(client)],
  claims: { email: ['email', 'email_verified'], profile: ['given_name', 'family_name', 'preferred_username'] },
  clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt'],
  async findAccount (_, id) {
    const names = { given_name: 'Ada', family_name: 'Lovelace', preferred_username: id }
    return { accountId: id, claims: async () => ({ sub: id, email: `${id}@elsewhere.example`, email_verified: true, ...names }) }
  }
})
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'))
