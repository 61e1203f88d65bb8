import { randomBytes } from 'node:crypto'

/** `file-`, its time in milliseconds as 12 hex digits, and 20 random ones: files made later sort later. */
export const newFileId = (now = Date.now()): string =>
  `file-${now.toString(16).padStart(12, '0')}${randomBytes(10).toString('hex')}`

/** The end of the year 9999: later instants are none to a database. */
const LATEST = Date.UTC(10_000, 0) - 1

/** When a file of ours was made; undefined for an id that somebody else gave. */
export function fileIdTime(id: string): Date | undefined {
  const digits = /^file-([0-9a-f]{12})[0-9a-f]{20}$/.exec(id)?.[1]
  if (digits === undefined) return undefined
  const time = Number.parseInt(digits, 16)
  return time <= LATEST ? new Date(time) : undefined
}
