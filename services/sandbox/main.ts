import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { openLog } from '@tollgate/telemetry'
import { z } from 'zod'
import { defaultSandboxSettings, isolationLevels, startSandbox } from './src/index.ts'

// The sandbox as a process of its own, for whoever wants it beside them and not inside. Settings come as one line of
// JSON on stdin, so that a token is in nobody's process list; the log goes to stdout, and its line `sandbox serves` has
// the URL. It ends in order at SIGTERM, SIGINT, or when stdin does, which is when its parent is gone.

const settings = z.strictObject({
  host: z.string().optional(),
  port: z.int().min(0).max(65_535).optional(),
  token: z.string().min(1).optional(),
  python: z.string().min(1).optional(),
  path: z.string().optional(),
  minIsolation: z.enum(isolationLevels).optional(),
  maxSessions: z.int().positive().optional(),
  warmSessions: z.int().nonnegative().optional(),
  preload: z.array(z.string()).optional(),
})

const DRAIN_MS = 10_000
const log = openLog({ service: 'sandbox', level: 'info' })

const input = createInterface({ input: process.stdin })
const [line] = (await once(input, 'line')) as [string]
const { path, ...wanted } = settings.parse(JSON.parse(line))
const defined = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined))

try {
  const sandbox = await startSandbox({
    log,
    settings: { ...defaultSandboxSettings, ...defined },
    ...(path === undefined ? {} : { path }),
  })
  const stop = () => void sandbox.close(Date.now() + DRAIN_MS).then((inOrder) => process.exit(inOrder ? 0 : 1))
  process.once('SIGTERM', stop).once('SIGINT', stop)
  input.once('close', stop)
} catch (error) {
  log.error({ err: error }, `did not start: ${error instanceof Error ? error.message : 'unknown reason'}`)
  process.exit(1)
}
