import { clipBytes } from '@tollgate/contracts'
import type { ExecCall } from './provider.ts'

/** Files named of one call; a workspace full of them is no answer. */
export const MAX_FILES = 1_000

/** A control character takes six bytes of JSON, so two such streams still fit into the 8 MiB of a reply on the bus. */
const MAX_STREAM_BYTES = 512 * 1024

export const clipStream = (text: string): string =>
  clipBytes(text, MAX_STREAM_BYTES, '\n[output cut: only its first 512 KiB are kept]')

/** Passes no more of each stream on than a result may hold; a piece goes out in events that a bus carries easily. */
export function clipEvents(pass: NonNullable<ExecCall['onOutput']>): NonNullable<ExecCall['onOutput']> {
  const left = { stdout: MAX_STREAM_BYTES, stderr: MAX_STREAM_BYTES }
  return ({ stream, text }) => {
    for (let from = 0; from < text.length && left[stream] > 0; ) {
      let piece = text.slice(from, from + EVENT_CHARACTERS)
      // never between the halves of a character
      if (/[\ud800-\udbff]$/.test(piece) && from + piece.length < text.length) piece = piece.slice(0, -1)
      from += piece.length
      left[stream] -= Buffer.byteLength(piece)
      pass({ stream, text: piece })
    }
  }
}

const EVENT_CHARACTERS = 16 * 1024
