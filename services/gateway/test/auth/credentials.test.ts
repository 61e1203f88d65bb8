import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Rig, startRig } from '../rig.ts'

let rig: Rig
let other: string
beforeAll(async () => {
  rig = await startRig({ postgresUrl: inject('postgresUrl') })
  other = (await rig.makeKey()).key
})
afterAll(() => rig.close())

/** Over a bare connection, so that header names, blanks and doubles go out as they are written. */
function ask(
  headers: string[],
  path = '/api/v1/tools',
): Promise<{ status: number; detail: unknown; challenge: unknown }> {
  return new Promise((resolve, reject) => {
    const asking = request(`${rig.url}${path}`, { headers: ['host', 'gateway', ...headers] }, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          detail: JSON.parse(text).detail,
          challenge: response.headers['www-authenticate'],
        }),
      )
    })
    asking.on('error', reject)
    asking.end()
  })
}

const missing = { status: 401, detail: 'Missing Otari-Key, Authorization, or x-api-key header', challenge: 'Bearer' }
const invalid = { status: 401, detail: 'Invalid API key', challenge: 'Bearer' }

describe('A-01 BR-123 where a key may stand', () => {
  test.each([
    ['Otari-Key', (key: string) => ['Otari-Key', key]],
    ['Otari-Key with a Bearer prefix', (key: string) => ['otari-key', `Bearer ${key}`]],
    ['Authorization', (key: string) => ['Authorization', `Bearer ${key}`]],
    ['authorization in lower case with blanks around', (key: string) => ['authorization', `bearer  ${key} `]],
    ['AUTHORIZATION in capitals', (key: string) => ['AUTHORIZATION', `BEARER ${key}`]],
    ['x-api-key', (key: string) => ['x-api-key', key]],
    ['X-API-Key with blanks around', (key: string) => ['X-API-Key', `  ${key}  `]],
    ['x-api-key beside an empty Authorization', (key: string) => ['authorization', '', 'x-api-key', key]],
    [
      'x-api-key beside an Authorization that is no bearer',
      (key: string) => ['authorization', 'Basic dTpw', 'x-api-key', key],
    ],
    ['Authorization beside an empty Otari-Key', (key: string) => ['otari-key', ' ', 'authorization', `Bearer ${key}`]],
  ])('A-01 BR-123 %s', async (_, headers) => {
    expect((await ask(headers(rig.firstKey))).status).toBe(200)
    expect(await ask(headers('gw-wrong'))).toEqual(invalid)
  })

  test.each([
    ['no header at all', []],
    ['an empty x-api-key', ['x-api-key', '']],
    ['an empty Authorization', ['authorization', '']],
    ['a bearer of nothing', ['authorization', 'Bearer ']],
    ['a bearer without a blank', ['authorization', 'Bearer']],
    ['basic credentials', ['authorization', 'Basic dTpw']],
  ])('A-01 %s is a missing key', async (_, headers) => {
    expect(await ask(headers)).toEqual(missing)
  })

  test('A-01 the first header of the order counts alone, also against a better one after it', async () => {
    const bad = 'gw-wrong'
    const good = rig.firstKey
    expect(await ask(['otari-key', bad, 'authorization', `Bearer ${good}`, 'x-api-key', good])).toEqual(invalid)
    expect(await ask(['authorization', `Bearer ${bad}`, 'x-api-key', good])).toEqual(invalid)
    expect((await ask(['otari-key', good, 'authorization', `Bearer ${bad}`, 'x-api-key', bad])).status).toBe(200)
    expect((await ask(['authorization', `Bearer ${good}`, 'x-api-key', bad])).status).toBe(200)
  })

  test.each([
    [
      'Authorization',
      (key: string, second: string) => ['authorization', `Bearer ${key}`, 'Authorization', `Bearer ${second}`],
    ],
    ['x-api-key', (key: string, second: string) => ['x-api-key', key, 'x-api-key', second]],
    ['Otari-Key', (key: string, second: string) => ['otari-key', key, 'Otari-Key', second]],
  ])('BR-123 %s sent twice is refused, be the keys two or one', async (_, headers) => {
    expect(await ask(headers(rig.firstKey, other))).toEqual(invalid)
    expect(await ask(headers(rig.firstKey, rig.firstKey))).toEqual(invalid)
  })

  test.each(['api_key', 'API_KEY', 'apikey', 'api-key', 'x-api-key', 'otari-key', 'access_token', 'anything'])(
    'BR-123 a key in the URL as %s is refused, also beside a good header, and is not logged',
    async (name) => {
      const path = `/api/v1/tools?a=1&${name}=${rig.firstKey}`
      const refused = {
        status: 400,
        detail: 'API keys are not accepted in the URL; send a header',
        challenge: undefined,
      }
      expect(await ask([], path)).toEqual(refused)
      expect(await ask(['x-api-key', rig.firstKey], path)).toEqual(refused)
      await expect.poll(() => rig.lines().filter((line) => line.status === 400).length).toBeGreaterThan(1)
      expect(rig.logged()).not.toContain(rig.firstKey)
    },
  )

  test('BR-123 a query that only looks like one is let through', async () => {
    expect((await ask(['x-api-key', rig.firstKey], '/api/v1/usage?api_keys=1')).status).toBe(422)
  })

  test.each([
    ['10 kB of header', 'x'.repeat(10_000)],
    ['10 kB after the right beginning', `gw-${'x'.repeat(10_000)}`],
    ['a key of 513 characters', 'g'.repeat(513)],
    ['a single character', 'g'],
    ['the right key and one more character', 'KEYx'],
    ['the right key less one character', 'KEY-'],
    ['letters beyond ASCII', 'gw-\xe4\xf6\xfc'],
  ])('BR-123 %s is an invalid key', async (_, key) => {
    const given = key === 'KEYx' ? `${rig.firstKey}x` : key === 'KEY-' ? rig.firstKey.slice(0, -1) : key
    expect(await ask(['x-api-key', given])).toEqual(invalid)
  })

  test('BR-123 a header too long for any key is answered before it is a request', async () => {
    expect(await ask(['x-api-key', 'x'.repeat(20_000)])).toMatchObject({ status: 431 })
  })

  test('BR-123 the refusal has the shape of its dialect', async () => {
    const { status, body } = await rig.send<{ detail: unknown }>('POST', '/api/v1/messages', { body: {} })
    // until the dialect is served the path is unknown, which says no more to nobody than to somebody
    expect([401, 404]).toContain(status)
    expect(body.detail).toMatchObject({ type: 'error', error: { message: expect.any(String) } })
  })
})

describe('A-01 keys that no longer count', () => {
  test('A-01 an inactive key', async () => {
    const { id, key } = await rig.makeKey()
    expect((await ask(['x-api-key', key])).status).toBe(200)
    await rig.send('PATCH', `/api/v1/keys/${id}`, { key: rig.masterKey, body: { is_active: false } })
    expect(await ask(['x-api-key', key])).toEqual({ ...invalid, detail: 'API key is inactive' })
    await rig.send('PATCH', `/api/v1/keys/${id}`, { key: rig.masterKey, body: { is_active: true } })
    expect((await ask(['x-api-key', key])).status).toBe(200)
  })

  test('A-01 an expired key, and one that expires while it is known', async () => {
    const { key: past } = await rig.makeKey({ expires_at: new Date(Date.now() - 1_000).toISOString() })
    expect(await ask(['x-api-key', past])).toEqual({ ...invalid, detail: 'API key has expired' })
    const { key: soon } = await rig.makeKey({ expires_at: new Date(Date.now() + 400).toISOString() })
    expect((await ask(['x-api-key', soon])).status).toBe(200)
    await expect.poll(() => ask(['x-api-key', soon])).toEqual({ ...invalid, detail: 'API key has expired' })
  })
})
