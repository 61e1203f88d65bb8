// How an address that must not be reached can be written, so that somebody takes it for something else.

const digits = (text: string, zero: number): string =>
  text.replace(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit)))

/** Circled digits have their zero elsewhere. */
const circled = (text: string): string =>
  text.replace(/\d/g, (digit) => (digit === '0' ? '\u24ea' : String.fromCodePoint(0x2460 + Number(digit) - 1)))

const octal = (value: number): string => `0${value.toString(8)}`
const hex = (value: number): string => `0x${value.toString(16)}`

/** Hosts that all mean one IPv4 address to some parser. */
export function spellingsOf(address: string): string[] {
  const octets = address.split('.').map(Number)
  const [a = 0, b = 0, c = 0, d = 0] = octets
  const number = ((a * 256 + b) * 256 + c) * 256 + d
  const low = number % 0x1_00_00_00
  const [high16, low16] = [a * 256 + b, c * 256 + d].map((half) => half.toString(16))
  const v6 = `${high16}:${low16}`
  return [
    address,
    `${address}.`,
    `${number}`,
    `${number}.`,
    hex(number),
    hex(number).toUpperCase(),
    `0x0000000${number.toString(16)}`,
    octal(number),
    `000${octal(number)}`,
    `${a}.${low}`,
    `${a}.${b}.${c * 256 + d}`,
    `${hex(a)}.${low}`,
    `${octal(a)}.${hex(b)}.${c * 256 + d}`,
    octets.map(hex).join('.'),
    octets.map((octet) => hex(octet).toUpperCase()).join('.'),
    octets.map(octal).join('.'),
    octets.map((octet) => `000${octal(octet)}`).join('.'),
    `${a}.${hex(b)}.${octal(c)}.${d}`,
    address.replaceAll('.', '%2e'),
    address.replace(/\d/g, (digit) => `%3${digit}`),
    encodeURIComponent(digits(address, 0xff10)),
    address.replaceAll('.', '\u3002'),
    address.replaceAll('.', '\uff0e'),
    address.replaceAll('.', '\uff61'),
    digits(address, 0xff10), // full-width
    digits(address, 0x1d7ce), // mathematical bold
    digits(address, 0x1d7f6), // mathematical monospace
    digits(address, 0x2080), // subscripts
    circled(address),
    circled(address).replaceAll('.', '\u3002'),
    address.split('').join('\u00ad'), // soft hyphens
    address.replace('.', '.\u200b'), // a space of no width
    address.replace('.', '\u2060.'),
    `\u200d${address}`,
    `[::ffff:${address}]`,
    `[::FFFF:${v6}]`,
    `[0:0:0:0:0:ffff:${v6}]`,
    `[0000:0000:0000:0000:0000:ffff:${address}]`,
    `[::ffff:0:${v6}]`,
    `[::${address}]`,
    `[::${v6}]`,
    `[64:ff9b::${address}]`,
    `[64:ff9b::${v6}]`,
    `[64:ff9b:1::${v6}]`,
    `[2002:${v6}::1]`,
    `[2001:0:${v6}::1]`,
    `[2001:0:101:101:0:0:${[...(high16 ?? '').padStart(4, '0')].map(inverted).join('')}:${[...(low16 ?? '').padStart(4, '0')].map(inverted).join('')}]`,
    `[fe80::1%25lo]`,
    `[::ffff:${address}%25lo]`,
    `user@${address}`,
    `a.test@${address}`,
    `a.test:80@${address}`,
    `a.test%40${address}`,
    `${address}\\@a.test`,
    `${address}%00.a.test`,
    `${address}%20.a.test`,
    `${address}%2f.a.test`,
    `a.test\t@${address}`,
    `a.test\n${address}`,
  ]
}

const inverted = (digit: string): string => (15 - Number.parseInt(digit, 16)).toString(16)
