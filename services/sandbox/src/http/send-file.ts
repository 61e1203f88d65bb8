import type { ServerResponse } from 'node:http'
import { type FileState, PIECE_BYTES, type Reading, type Sandbox } from '../drivers/driver.ts'
import { type Kept, keep } from '../drivers/reused-memory.ts'

/** Pieces asked for before the client has taken those that came, so that nobody waits for the other. */
const AHEAD = 2

/** A write costs about as much as the copy of so much. */
const TOGETHER_BYTES = 512 * 1024

/** The answer that a file becomes. */
export interface FileAnswer {
  raw: ServerResponse
  /** Why a file of this size is not sent, if it is not. */
  refused(size: number): Error | undefined
  head(size: number): void
  /** Time in which a client takes something of it. */
  unreadMs: number
}

/**
 * Passes a file on as it comes and as fast as the client takes it, of which never more than the pieces ahead are held. A file
 * that changes meanwhile breaks the answer off: half of each would be neither. Rejects when there is no head yet.
 */
export async function sendFile(answer: FileAnswer, sandbox: Sandbox, path: string): Promise<void> {
  const { raw } = answer
  const coming: Promise<void>[] = []
  let file: FileState | undefined
  let fault: Error | undefined
  let asked = 0
  /** To be written together; the last of it when it is known that all was of one file. */
  let held: Kept[] = []
  let heldBytes = 0
  const pass = () => {
    if (!raw.headersSent) answer.head(file?.size ?? 0)
    raw.cork()
    for (const { bytes, release } of held) raw.write(bytes, release)
    raw.uncork()
    held = []
    heldBytes = 0
  }

  const ask = () => {
    while (coming.length < AHEAD && asked < (file?.size ?? 1) && !fault) {
      const piece = sandbox.read(path, asked, PIECE_BYTES, reading)
      piece.catch(() => {}) // heard of when its turn comes, or of no interest any more
      coming.push(piece)
      asked += PIECE_BYTES
    }
  }
  const reading: Reading = {
    begin(found) {
      if (file) {
        if (found.identity !== file.identity || found.size !== file.size) fault ??= new Error('the file changed')
        return
      }
      file = found
      fault = answer.refused(found.size)
      ask()
    },
    data(bytes) {
      if (fault || raw.destroyed) return
      if (heldBytes >= TOGETHER_BYTES) pass()
      held.push(keep(bytes))
      heldBytes += bytes.length
    },
  }

  ask()
  try {
    for (let piece = coming[0]; piece && !raw.destroyed; piece = coming[0]) {
      await piece
      if (fault) throw fault
      void coming.shift()
      if (raw.writableNeedDrain) await drained(raw, answer.unreadMs)
      ask()
    }
  } catch (thrown) {
    if (!raw.headersSent) throw thrown
    raw.destroy()
    return
  }
  if (raw.destroyed) return
  pass()
  raw.end()
}

/** Waits for room. A client that takes nothing is given up; one that takes it slowly is waited for, however long. */
async function drained(raw: ServerResponse, unreadMs: number): Promise<void> {
  const giveUp = () => raw.destroy()
  // not while any of a write that is under way still goes out
  raw.once('timeout', giveUp).setTimeout(unreadMs)
  await new Promise<void>((resolve) => {
    const settle = () => {
      raw.off('drain', settle).off('close', settle)
      resolve()
    }
    raw.once('drain', settle).once('close', settle)
  })
  raw.off('timeout', giveUp).setTimeout(0)
}
