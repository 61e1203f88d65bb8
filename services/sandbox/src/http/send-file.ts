import type { ServerResponse } from 'node:http'
import { PIECE_BYTES, type Piece, type Sandbox } from '../drivers/driver.ts'

/** Pieces asked for before the client has taken those that came, so that nobody waits for the other. */
const AHEAD = 2

/**
 * Writes a file of which the first piece is known, as fast as the client takes it. A file that changes meanwhile breaks the
 * answer off: half of each would be neither.
 */
export async function sendFile(to: ServerResponse, sandbox: Sandbox, path: string, first: Piece): Promise<void> {
  const coming: Promise<Piece>[] = []
  let asked = first.bytes
  const ask = () => {
    for (; asked < first.size && coming.length < AHEAD; asked += PIECE_BYTES) {
      const piece = sandbox.read(path, asked, PIECE_BYTES)
      piece.catch(() => {}) // heard of when its turn comes, or of no interest any more
      coming.push(piece)
    }
  }
  try {
    for (let passed = 0; passed < first.size; ) {
      ask()
      const piece = passed === 0 ? first : ((await coming.shift()) as Piece)
      if (piece.identity !== first.identity || piece.bytes !== Math.min(PIECE_BYTES, first.size - passed))
        throw new Error('the file changed while it was read')
      passed += piece.bytes
      if (!(await taken(to, piece.data))) return
    }
    to.end()
  } catch (thrown) {
    to.destroy(thrown instanceof Error ? thrown : undefined)
  }
}

/** Waits until there is room for more; false when the client is gone. */
async function taken(to: ServerResponse, data: Buffer[]): Promise<boolean> {
  if (to.destroyed) return false
  to.cork()
  let hasRoom = true
  for (const each of data) hasRoom = to.write(each)
  to.uncork()
  if (hasRoom) return true
  return new Promise((resolve) => {
    const settle = (room: boolean) => () => {
      to.off('drain', drained).off('close', gone)
      resolve(room)
    }
    const drained = settle(true)
    const gone = settle(false)
    to.once('drain', drained).once('close', gone)
  })
}
