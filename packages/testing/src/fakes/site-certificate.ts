import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { isIPv4 } from 'node:net'

/** A self-signed certificate for these names and IPv4 addresses; `cert` doubles as the authority a client is told to trust. */
export function selfSigned(...names: string[]): { key: string; cert: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const body = sequence(
    der(0xa0, integer(Buffer.from([2]))), // version 3
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    name('tollgate test site'),
    sequence(time(-1), time(1)),
    name('tollgate test site'),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      0xa3,
      sequence(extension('551d13', sequence(boolean(true))), extension('551d11', sequence(...names.map(alternative)))),
    ),
  )
  const signature = sign('sha256', body, privateKey)
  const whole = sequence(body, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature))
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${whole.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
  }
}

/** Tag, length, contents: all there is to DER (X.690). */
function der(tag: number, ...contents: Buffer[]): Buffer {
  const body = Buffer.concat(contents)
  const size = body.length
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), body])
}

const sequence = (...items: Buffer[]): Buffer => der(0x30, ...items)
const integer = (bytes: Buffer): Buffer => der(0x02, bytes)
const boolean = (value: boolean): Buffer => der(0x01, Buffer.from([value ? 255 : 0]))
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'))
const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'))
const name = (common: string): Buffer => sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(common)))))
const extension = (id: string, value: Buffer): Buffer => sequence(oid(id), der(0x04, value))
const alternative = (host: string): Buffer =>
  isIPv4(host) ? der(0x87, Buffer.from(host.split('.').map(Number))) : der(0x82, Buffer.from(host))

/** Years from now, as UTCTime. */
function time(years: number): Buffer {
  const at = new Date()
  at.setUTCFullYear(at.getUTCFullYear() + years)
  return der(0x17, Buffer.from(`${at.toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`))
}
