import { createCipheriv, createHash, randomBytes } from 'node:crypto'
import { buildPdf } from '@tollgate/testing'

export type Cipher = 'RC4' | 'AES-128' | 'AES-256'

const PAD = Buffer.from('28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a', 'hex')
const PERMISSIONS = -44
const md5 = (...parts: Uint8Array[]): Buffer => createHash('md5').update(Buffer.concat(parts)).digest()

/** A page of one line, encrypted as ISO 32000-1 7.6 and ISO 32000-2 7.6 say, for who has the user's password. */
export function encryptedPdf(line: string, cipher: Cipher, password: string): Uint8Array {
  const id = randomBytes(16)
  const { key, dictionary } = cipher === 'AES-256' ? newKey(password) : oldKey(password, id, cipher)
  const content = Buffer.from(`BT /F1 12 Tf 72 700 Td (${line}) Tj ET`)
  return buildPdf(
    [
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
      { data: encrypt(content, 4, key, cipher) },
      '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
      `<< /Filter /Standard /P ${PERMISSIONS} ${dictionary} >>`,
    ],
    { trailer: `/Encrypt 6 0 R /ID [<${id.toString('hex')}> <${id.toString('hex')}>]` },
  )
}

function encrypt(data: Buffer, object: number, key: Buffer, cipher: Cipher): Buffer {
  const salt = Buffer.from([object, 0, 0, 0, 0])
  if (cipher === 'RC4') return rc4(md5(key, salt), data)
  const own = cipher === 'AES-256' ? key : md5(key, salt, Buffer.from('sAlT'))
  const iv = randomBytes(16)
  const aes = createCipheriv(cipher === 'AES-256' ? 'aes-256-cbc' : 'aes-128-cbc', own, iv)
  return Buffer.concat([iv, aes.update(data), aes.final()])
}

/** Revisions 3 and 4: algorithms 2, 3 and 5. */
function oldKey(password: string, id: Buffer, cipher: 'RC4' | 'AES-128') {
  const padded = (text: string) => Buffer.concat([Buffer.from(text, 'latin1'), PAD]).subarray(0, 32)
  const twenty = (key: Buffer, data: Buffer) =>
    Array.from({ length: 20 }, (_, at) => at).reduce(
      (out, at) => rc4(key.map((byte) => byte ^ at) as Buffer, out),
      data,
    )
  const often = (hash: Buffer) => Array.from({ length: 50 }).reduce<Buffer>((out) => md5(out), hash)
  const owner = twenty(often(md5(padded('owner'))), padded(password))
  const permissions = Buffer.alloc(4)
  permissions.writeInt32LE(PERMISSIONS)
  const key = often(md5(padded(password), owner, permissions, id))
  const user = Buffer.concat([twenty(key, md5(PAD, id)), Buffer.alloc(16)])
  const filter = '/CF << /StdCF << /CFM /AESV2 /AuthEvent /DocOpen /Length 16 >> >> /StmF /StdCF /StrF /StdCF'
  const kind = cipher === 'RC4' ? '/V 2 /R 3 /Length 128' : `/V 4 /R 4 /Length 128 ${filter}`
  return { key, dictionary: `${kind} /O <${owner.toString('hex')}> /U <${user.toString('hex')}>` }
}

/** Revision 6: algorithms 8, 9 and 10. */
function newKey(password: string) {
  const key = randomBytes(32)
  const seal = (text: string, user: Buffer) => {
    const [validation, wrapping] = [randomBytes(8), randomBytes(8)]
    const check = Buffer.concat([hash(text, validation, user), validation, wrapping])
    const aes = createCipheriv('aes-256-cbc', hash(text, wrapping, user), Buffer.alloc(16)).setAutoPadding(false)
    return { check, wrapped: Buffer.concat([aes.update(key), aes.final()]) }
  }
  const user = seal(password, Buffer.alloc(0))
  const owner = seal('owner', user.check)
  const permissions = Buffer.alloc(16, 0xff)
  permissions.writeInt32LE(PERMISSIONS)
  permissions.write('Tadb', 8, 'latin1')
  const aes = createCipheriv('aes-256-ecb', key, null).setAutoPadding(false)
  const perms = Buffer.concat([aes.update(permissions), aes.final()])
  const hex = (bytes: Buffer) => `<${bytes.toString('hex')}>`
  return {
    key,
    dictionary:
      `/V 5 /R 6 /Length 256 /O ${hex(owner.check)} /U ${hex(user.check)} /OE ${hex(owner.wrapped)} /UE ${hex(user.wrapped)} ` +
      `/Perms ${hex(perms)} /CF << /StdCF << /CFM /AESV3 /AuthEvent /DocOpen /Length 32 >> >> /StmF /StdCF /StrF /StdCF`,
  }
}

/** Algorithm 2.B. */
function hash(password: string, salt: Buffer, user: Buffer): Buffer {
  const text = Buffer.from(password, 'utf8')
  let key = createHash('sha256')
    .update(Buffer.concat([text, salt, user]))
    .digest()
  for (let round = 1, last = 0; round <= 64 || last > round - 1 - 32; round++) {
    const data = Buffer.concat(Array.from({ length: 64 }, () => Buffer.concat([text, key, user])))
    const aes = createCipheriv('aes-128-cbc', key.subarray(0, 16), key.subarray(16, 32)).setAutoPadding(false)
    const out = Buffer.concat([aes.update(data), aes.final()])
    const rest = out.subarray(0, 16).reduce((sum, byte) => sum + byte, 0) % 3
    key = createHash(['sha256', 'sha384', 'sha512'][rest] as string)
      .update(out)
      .digest()
    last = out.at(-1) as number
  }
  return key.subarray(0, 32)
}

function rc4(key: Uint8Array, data: Buffer): Buffer {
  const state = Array.from({ length: 256 }, (_, at) => at)
  const swap = (a: number, b: number) => ([state[a], state[b]] = [state[b] as number, state[a] as number])
  for (let at = 0, other = 0; at < 256; at++) {
    other = (other + (state[at] as number) + (key[at % key.length] as number)) % 256
    swap(at, other)
  }
  let [a, b] = [0, 0]
  return Buffer.from(
    data.map((byte) => {
      a = (a + 1) % 256
      b = (b + (state[a] as number)) % 256
      swap(a, b)
      return byte ^ (state[((state[a] as number) + (state[b] as number)) % 256] as number)
    }),
  )
}
