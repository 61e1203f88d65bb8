import { clipBytes } from '@tollgate/contracts'

/** Files named of one call; a workspace full of them is no answer. */
export const MAX_FILES = 1_000

/** A control character takes six bytes of JSON, so two such streams still fit into the 8 MiB of a reply on the bus. */
const MAX_STREAM_BYTES = 512 * 1024

export const clipStream = (text: string): string =>
  clipBytes(text, MAX_STREAM_BYTES, '\n[output cut: only its first 512 KiB are kept]')
