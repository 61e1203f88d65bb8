import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * A port for a server that is ended and started again. It lies below those that the system hands out, so that no
 * connection of another test takes it in between.
 */
export async function steadyPort(): Promise<number> {
  for (let tries = 0; tries < 50; tries += 1) {
    const port = randomInt(15_000, 32_000)
    if (await isFree(port)) return port
  }
  throw new Error('no free port was found')
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '0.0.0.0', () => server.close(() => resolve(true)))
  })
