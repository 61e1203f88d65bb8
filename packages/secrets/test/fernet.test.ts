import { expect, test } from 'vitest'
import { parseFernetKey, seal, unseal } from '../src/fernet.ts'

// the known answers of github.com/fernet/spec: generate.json, verify.json, invalid.json
const SECRET = 'cw_0x689RpI-jtRR7oE8h_eQsKImvJapLeSbXpwF4e4='
const HELLO = 'gAAAAAAdwJ6wAAECAwQFBgcICQoLDA0ODy021cpGVWKZ_eEwCGM4BLLF_5CV9dOPmrhuVUPgJobwOz7JcbmrR64jVmpU4IwqDA=='
const key = parseFernetKey(SECRET)!

test('A-30 makes the token the specification makes', () => {
  const iv = Buffer.from(Array.from({ length: 16 }, (_, i) => i))
  expect(seal(key, 'hello', new Date('1985-10-26T01:20:00-07:00'), iv)).toBe(HELLO)
})

test('A-30 reads the token the specification made', () => {
  expect(unseal(key, HELLO)).toBe('hello')
})

test.each([
  [
    'an incorrect mac',
    'gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAl1-szkFVzXTuGb4hR8AKtwcaX1YdykQUFBQUFBQUFBQQ==',
  ],
  ['a short token', 'gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPA=='],
  [
    'invalid base64',
    '%%%%%%%%%%%%%AECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAl1-szkFVzXTuGb4hR8AKtwcaX1YdykRtfsH-p1YsUD2Q==',
  ],
  [
    'a payload that is no multiple of a block',
    'gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPOm73QeoCk9uGib28Xe5vz6oxq5nmxbx_v7mrfyudzUm',
  ],
  [
    'a padding error',
    'gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0ODz4LEpdELGQAad7aNEHbf-JkLPIpuiYRLQ3RtXatOYREu2FWke6CnJNYIbkuKNqOhw==',
  ],
  [
    'an incorrect IV',
    'gAAAAAAdwJ6xBQECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAkLhFLHpGtDBRLRTZeUfWgHSv49TF2AUEZ1TIvcZjK1zQ==',
  ],
  ['data after the padding', `${HELLO}trailingdata`],
  [
    'characters that are not base64',
    '*gAAAAAAdwJ6wAAECAwQFBgcI!CQoLDA0ODy021?cpGVWKZ_eEwC@GM4BLLF_5CV9dOPmrhuVUPgJobwOz7JcbmrR64jVmpU4IwqDA==',
  ],
  [
    'characters of the other base64',
    'gAAAAAAdwJ6wAAEC/AwQFBgcICQoLDA0ODy+021cpGVWKZ_eEwCGM4BLLF_5CV9dOPmrhuVUPgJobwOz7JcbmrR64jVmpU4IwqDA==',
  ],
  ['another version', `gQ${HELLO.slice(2)}`],
  ['nothing', ''],
  ['padding alone', '=='],
])('A-30 refuses %s', (_, token) => {
  expect(unseal(key, token)).toBeUndefined()
})

test.each([
  'gAAAAAAdwStRAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAnja1xKYyhd-Y6mSkTOyTGJmw2Xc2a6kBd-iX9b_qXQcw==',
  'gAAAAAAdwJ6xAAECAwQFBgcICQoLDA0OD3HkMATM5lFqGaerZ-fWPAl1-szkFVzXTuGb4hR8AKtwcaX1YdykRtfsH-p1YsUD2Q==',
])('A-30 reads a token of any age, since what is at rest has none: %s', (token) => {
  expect(unseal(key, token)).toBe('')
})

test('A-30 takes every single changed character for an altered token', () => {
  for (let at = 0; at < HELLO.length - 2; at++) {
    const altered = HELLO.slice(0, at) + (HELLO[at] === 'A' ? 'Q' : 'A') + HELLO.slice(at + 1)
    // the last characters of a base64 text can hold bits that stand for nothing
    if (Buffer.from(altered, 'base64url').equals(Buffer.from(HELLO, 'base64url'))) continue
    expect(unseal(key, altered), `character ${at}`).toBeUndefined()
  }
})

test.each(['', 'a', 'fifteen letters', 'sixteen letters!', 'ключ 🔑', '\0', 'x'.repeat(100_000)])(
  'A-30 gives back what was sealed',
  (text) => {
    expect(unseal(key, seal(key, text))).toBe(text)
  },
)

test('A-30 never seals the same text twice alike', () => {
  expect(seal(key, 'hello')).not.toBe(seal(key, 'hello'))
})
