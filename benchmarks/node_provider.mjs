// node-oidc-provider as the benchmarks ask it: node node_provider.mjs FOLDER DRIVERS PORT STORAGE DATABASE.
// FOLDER has node_modules/oidc-provider, DRIVERS has libsql and pg; STORAGE is memory, sqlite (DATABASE is a file) or
// postgresql (a URL). Prints one line of JSON once it listens: what the requests are made of.
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { pathToFileURL } from 'node:url'

const [folder, drivers, port, storage, database] = process.argv.slice(2)
const required = (name) => createRequire(`${drivers}/`)(name)
const { Provider } = await import(pathToFileURL(createRequire(`${folder}/`).resolve('oidc-provider')))

const issuer = `http://localhost:${port}`
const redirectUri = 'https://app.example/callback'
const scope = 'openid profile'
const person = 'visitor'
// Its own pattern for a grant that is not built in: a client that authenticates with a signed assertion gets a token.
const grantType = 'urn:example:service-token'

// A table of JSON by key, as the example adapters of the package have it; each write is a durable commit of its own.
const tables = {
  memory: async () => {
    const rows = new Map()
    return {
      read: async (column, value) => column === 'key' ? rows.get(value) : [...rows.values()].find((row) => row[column] === value),
      write: async (row) => { rows.set(row.key, row) },
      remove: async (column, value) => { for (const [key, row] of rows) if (row[column] === value) rows.delete(key) }
    }
  },
  sqlite: async (file) => {
    const Database = required('libsql')
    const database = new Database(file)
    database.exec('PRAGMA journal_mode = WAL')
    database.exec('PRAGMA synchronous = FULL')
    database.exec(SCHEMA)
    const prepared = (sql) => database.prepare(sql.replaceAll(/\$\d/g, '?'))
    const [reads, removes] = [SELECT, DELETE].map((sql) => ({ key: prepared(sql('key')), grant_id: prepared(sql('grant_id')), uid: prepared(sql('uid')) }))
    const insert = prepared(INSERT)
    return {
      read: async (column, value) => reads[column].get(value),
      write: async (row) => { insert.run(row.key, row.payload, row.expires_at, row.grant_id, row.uid) },
      remove: async (column, value) => { removes[column].run(value) }
    }
  },
  postgresql: async (url) => {
    const pool = new (required('pg').Pool)({ connectionString: url })
    await pool.query(SCHEMA)
    return {
      read: async (column, value) => (await pool.query({ name: `read ${column}`, text: SELECT(column), values: [value] })).rows[0],
      write: (row) => pool.query({ name: 'write', text: INSERT, values: [row.key, row.payload, row.expires_at, row.grant_id, row.uid] }),
      remove: (column, value) => pool.query({ name: `remove ${column}`, text: DELETE(column), values: [value] })
    }
  }
}
const SCHEMA = `CREATE TABLE entries (key TEXT PRIMARY KEY, payload TEXT NOT NULL, expires_at BIGINT, grant_id TEXT, uid TEXT);
  CREATE INDEX entries_by_grant ON entries (grant_id); CREATE INDEX entries_by_uid ON entries (uid)`
const SELECT = (column) => `SELECT payload, expires_at FROM entries WHERE ${column} = $1`
const DELETE = (column) => `DELETE FROM entries WHERE ${column} = $1`
const INSERT = `INSERT INTO entries VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, expires_at = excluded.expires_at`
const table = await tables[storage](database)

class Adapter {
  constructor (model) { this.model = model }
  async upsert (id, payload, expiresIn) {
    const now = Math.floor(Date.now() / 1000)
    await table.write({
      key: `${this.model}:${id}`,
      payload: JSON.stringify(payload),
      expires_at: expiresIn ? now + expiresIn : null,
      grant_id: payload.grantId ?? null,
      uid: this.model === 'Session' ? payload.uid : null
    })
  }

  async found (column, value) {
    const row = await table.read(column, value)
    return row && !(row.expires_at <= Date.now() / 1000) ? JSON.parse(row.payload) : undefined
  }

  find (id) { return this.found('key', `${this.model}:${id}`) }
  findByUid (uid) { return this.found('uid', uid) }
  async findByUserCode () { return undefined }
  async consume (id) {
    const payload = await this.find(id)
    await this.upsert(id, { ...payload, consumed: Math.floor(Date.now() / 1000) }, payload.exp - Math.floor(Date.now() / 1000))
  }

  destroy (id) { return table.remove('key', `${this.model}:${id}`) }
  revokeByGrantId (grantId) { return table.remove('grant_id', grantId) }
}

const rsa = () => generateKeyPairSync('rsa', { modulusLength: 2048 })
const service = rsa()
const serviceKey = { ...service.publicKey.export({ format: 'jwk' }), kid: 'service-key', use: 'sig', alg: 'RS256' }
const byAssertion = (id) => ({
  client_id: id,
  grant_types: [grantType],
  redirect_uris: [],
  response_types: [],
  token_endpoint_auth_method: 'private_key_jwt',
  token_endpoint_auth_signing_alg: 'RS256',
  jwks: { keys: [serviceKey] },
  scope
})

async function findAccount (_, id) {
  const names = { given_name: 'Ada', family_name: 'Example', name: 'Ada Example', preferred_username: id }
  return { accountId: id, claims: async () => ({ sub: id, updated_at: 1790000000, ...names }) }
}

const provider = new Provider(issuer, {
  adapter: Adapter,
  claims: { profile: ['given_name', 'family_name', 'name', 'preferred_username', 'updated_at'] },
  clients: [byAssertion('opaque'), byAssertion('jwt'), {
    client_id: 'app',
    client_secret: 'a-secret-of-43-characters-0123456789-012345',
    grant_types: ['authorization_code', 'refresh_token'],
    redirect_uris: [redirectUri],
    response_types: ['code'],
    token_endpoint_auth_method: 'client_secret_basic'
  }],
  clientAuthMethods: ['client_secret_basic', 'private_key_jwt'],
  cookies: { keys: [randomUUID()] },
  features: { devInteractions: { enabled: false }, introspection: { enabled: true } },
  findAccount,
  interactions: { url: () => '/interaction' },
  issueRefreshToken: async () => true,
  jwks: { keys: [{ ...rsa().privateKey.export({ format: 'jwk' }), kid: 'provider-key', use: 'sig', alg: 'RS256' }] },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  scopes: ['openid', 'offline_access', 'profile'],
  ttl: { AccessToken: 3600, AuthorizationCode: 600, Grant: 1209600, IdToken: 3600, RefreshToken: 1209600, Session: 1209600 }
})

async function grantFor (accountId, clientId) {
  const grant = new provider.Grant({ accountId, clientId })
  grant.addOIDCScope(scope)
  return grant.save()
}

const grantIds = { opaque: await grantFor('opaque', 'opaque'), jwt: await grantFor('jwt', 'jwt') }
const resourceServer = new provider.ResourceServer('https://api.example', {
  audience: 'https://api.example', scope, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } }
})

async function serviceToken (ctx) {
  const { client, params } = ctx.oidc
  const account = await findAccount(ctx, client.clientId)
  const grant = await provider.Grant.find(grantIds[client.clientId])
  const granted = grant.getOIDCScopeFiltered(new Set(params.scope.split(' ')))
  const token = new provider.AccessToken({
    accountId: account.accountId, client, grantId: grant.jti, gty: grantType, scope: granted
  })
  if (client.clientId === 'jwt') token.resourceServer = resourceServer
  ctx.oidc.entity('AccessToken', token)
  const accessToken = await token.save()
  const idToken = new provider.IdToken(await account.claims(), { ctx })
  idToken.scope = granted
  ctx.body = {
    access_token: accessToken,
    expires_in: token.expiration,
    id_token: await idToken.issue({ use: 'idtoken' }),
    scope: granted,
    token_type: token.tokenType
  }
}
provider.registerGrantType(grantType, serviceToken, ['scope'])

// A person who is signed in and has agreed, and the cookies of their browser.
const session = new provider.Session()
session.loginAccount({ accountId: person, amr: ['pwd'] })
session.ensureClientContainer('app')
session.grantIdFor('app', await grantFor(person, 'app'))
await session.save(14 * 86400)
const request = new IncomingMessage(new Socket())
const { cookies } = provider.createContext(request, new ServerResponse(request))
const cookie = `_session=${session.id}`

provider.listen(Number(port), '127.0.0.1', () => {
  const key = service.privateKey.export({ format: 'pem', type: 'pkcs8' })
  const basic = Buffer.from('app:a-secret-of-43-characters-0123456789-012345').toString('base64')
  console.log(JSON.stringify({ key, basic, cookie: `${cookie}; _session.sig=${cookies.keys.sign(cookie)}` }))
})
