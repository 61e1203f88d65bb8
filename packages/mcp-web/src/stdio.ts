import { randomUUID } from 'node:crypto'
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import type { Bus } from '@tollgate/bus'
import type { Running } from '@tollgate/service'
import type { Log } from '@tollgate/telemetry'
import type { RunCall } from './call.ts'
import { webServer, webTools } from './server.ts'
import type { WebSettings } from './settings.ts'

interface StdioNeeds {
  bus: Bus
  log: Log
  settings: WebSettings
  version: string
  /** Called when the client has closed its side: nobody will ask for more. */
  onClosed(): void
}

/** A line of the client's longer than this ends the connection. */
const MOST_MESSAGE_BYTES = 16 * 1024 * 1024
/** Over every deadline that the tools set themselves. */
const CALL_MS = 600_000

/**
 * The web server on standard input and output, for the one client that started this process. Nobody is asked for a key
 * and nobody pays, since whoever can start it could fetch by itself.
 */
export async function serveStdio({ bus, log, settings, version, onClosed }: StdioNeeds): Promise<Running> {
  const transport = new StdioServerTransport(process.stdin, process.stdout, { maxBufferSize: MOST_MESSAGE_BYTES })
  const server = webServer(webTools(bus, settings), { version, log, runFor: (_call, signal) => runFree(signal) })
  const running = new Set<Promise<unknown>>()
  let closing = false
  server.onclose = () => {
    if (!closing) onClosed()
  }
  process.stdin.once('end', onClosed)
  await server.connect(transport)
  return {
    async close(deadline) {
      closing = true
      const ended = await endBy(Promise.allSettled(running), deadline)
      // what has just ended is still to be written
      await immediate()
      await server.close()
      return ended
    },
  }

  function runFree(signal: AbortSignal): RunCall {
    return async (_kind, run) => {
      const call = run({ tenancy: desktop(), signal, deadline: Date.now() + CALL_MS })
      running.add(call)
      try {
        return await call
      } finally {
        running.delete(call)
      }
    }
  }
}

async function endBy(work: Promise<unknown>, deadline: number): Promise<boolean> {
  const timer = new AbortController()
  const late = sleep(Math.max(0, deadline - Date.now()), 'late', { signal: timer.signal }).catch(() => 'in time')
  const end = await Promise.race([work, late])
  timer.abort()
  return end !== 'late'
}

const desktop = () => ({
  organization: 'desktop',
  workspace: 'desktop',
  user: 'desktop',
  key: 'desktop',
  request: randomUUID(),
  attempt: 0,
})
