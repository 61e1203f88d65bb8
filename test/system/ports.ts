import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const FIRST = 15_000
/** Of a test process: others that run at the same time choose among other ports. */
const PORTS = 2_000
const PROCESSES = 8
/** Whoever was given a port may not listen on it yet, or not just now. */
const given = new Set<number>()

/**
 * A port for a server that is ended and started again. It lies below those that the system hands out, so that no
 * connection of another test takes it in between.
 */
export async function steadyPort(): Promise<number> {
  const first = FIRST + (Number(process.env.VITEST_POOL_ID ?? 0) % PROCESSES) * PORTS
  for (let tries = 0; tries < 50; tries += 1) {
    const port = first + randomInt(PORTS)
    if (given.has(port)) continue
    given.add(port)
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
