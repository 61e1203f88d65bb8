import { randomBytes } from 'node:crypto'
import { Fault } from '@tollgate/contracts'
import { openSecrets } from '@tollgate/secrets'
import { describe, expect, test } from 'vitest'

const freshKey = () => randomBytes(32).toString('base64url')
const [old, current, other] = [freshKey(), freshKey(), freshKey()]

describe('A-30 rotation', () => {
  test('A-30 the first key encrypts and every key decrypts', () => {
    const before = openSecrets(old).encrypt('sk-canary')
    const rotated = openSecrets(`${current},${old}`)
    expect(rotated.decrypt(before)).toBe('sk-canary')
    const after = rotated.encrypt('sk-canary')
    expect(openSecrets(current).decrypt(after)).toBe('sk-canary')
    expect(openSecrets(old).decrypt(after)).toBeUndefined()
  })

  test.each([`${current},${old}`, `${current} ${old}`, ` ${current}\n${old}\t`, `${current} , ${old},`])(
    'A-30 keys may be divided by commas and blanks: %j',
    (keys) => {
      expect(openSecrets(keys).decrypt(openSecrets(old).encrypt('x'))).toBe('x')
    },
  )

  test('A-30 the stored form shows nothing of the secret', () => {
    expect(openSecrets(current).encrypt('sk-canary')).not.toContain('canary')
  })

  test('A-32 brings old tokens under the first key, once', () => {
    const token = openSecrets(old).encrypt('sk-canary')
    const rotated = openSecrets(`${current},${old}`)
    const moved = rotated.reencrypt(token)
    if (moved.state !== 'reencrypted') throw new Error(`was ${moved.state}`)
    expect(openSecrets(current).decrypt(moved.token)).toBe('sk-canary')
    expect(rotated.reencrypt(moved.token)).toEqual({ state: 'skipped' })
  })

  test('A-32 A-33 leaves what no key reads, without a throw', () => {
    const foreign = openSecrets(other).encrypt('x')
    for (const token of [foreign, '', 'plain text', '\0']) {
      expect(openSecrets(current).decrypt(token)).toBeUndefined()
      expect(openSecrets(current).reencrypt(token)).toEqual({ state: 'unreadable' })
    }
  })
})

describe('A-31 no key', () => {
  test.each([undefined, '', '  ', ',', ' , \n'])(
    'A-31 with %j nothing can be stored and the refusal is a 400',
    (keys) => {
      const secrets = openSecrets(keys)
      expect(secrets.available).toBe(false)
      const refused = (): Fault => {
        try {
          secrets.encrypt('sk-canary')
        } catch (error) {
          return Fault.from(error)
        }
        throw new Error('was stored')
      }
      expect(refused()).toMatchObject({ status: 400 })
      expect(refused().message).toContain('OTARI_SECRET_KEY')
      expect(secrets.decrypt(openSecrets(current).encrypt('x'))).toBeUndefined()
      expect(secrets.reencrypt(openSecrets(current).encrypt('x'))).toEqual({ state: 'unreadable' })
    },
  )

  test.each([
    'too-short',
    randomBytes(31).toString('base64url'),
    randomBytes(33).toString('base64url'),
    `${randomBytes(30).toString('base64url')}++//`,
    `${current}=a`,
    `${current}:${old}`,
  ])('A-31 a malformed key stops the start and is not quoted: %s', (bad) => {
    expect(() => openSecrets(bad)).toThrow('OTARI_SECRET_KEY: key 1 is not a Fernet key')
    expect(() => openSecrets(`${current},${bad}`)).toThrow('key 2')
    expect(() => openSecrets(bad)).not.toThrow(bad)
  })
})
