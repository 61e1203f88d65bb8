import { randomBytes } from 'node:crypto'

/** `file-`, its time in milliseconds as 12 hex digits, and 20 random ones: files made later sort later. */
export const newFileId = (now = Date.now()): string =>
  `file-${now.toString(16).padStart(12, '0')}${randomBytes(10).toString('hex')}`

/** When a file of ours was made; undefined for an id that somebody else gave. */
export function fileIdTime(id: string): Date | undefined {
  const time = /^file-([0-9a-f]{12})[0-9a-f]{20}$/.exec(id)?.[1]
  return time === undefined ? undefined : new Date(Number.parseInt(time, 16))
}
