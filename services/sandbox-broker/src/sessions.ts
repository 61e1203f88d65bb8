import type { Handler } from '@tollgate/bus'
import type { sandboxExec } from '@tollgate/contracts'
import type { FileStore } from '@tollgate/files'
import type { Log } from '@tollgate/telemetry'
import type { Containers } from './containers.ts'
import { clipEvents, clipStream } from './limits.ts'
import { collectProduced, producedNames, takeSnapshot } from './produced.ts'
import type { Provider } from './provider.ts'
import type { SandboxBrokerSettings } from './settings.ts'
import { traced } from './traced.ts'

/** CFG-34 */
const OUTPUT_FILES = 20
const OUTPUT_BYTES = 100 * 1024 * 1024

interface SessionNeeds {
  provider: Provider
  settings: SandboxBrokerSettings
  /** Without it produced files are named and stay in the sandbox. */
  files: FileStore | undefined
  containers: Containers | undefined
  log: Log
}

/** Runs one piece of code. A program that fails is an answer like any other (CP-13); only its sandbox can fail. */
export const execInSession =
  ({ provider, settings, files, containers, log }: SessionNeeds): Handler<typeof sandboxExec> =>
  async ({ tenancy, session, kind, code, stream, timeoutSeconds }, { signal, deadline, emit }) => {
    emit({ type: 'running' })
    const limits = { signal, deadline }
    const call = {
      kind,
      code,
      timeoutSeconds: Math.min(timeoutSeconds, settings.execTimeoutSeconds),
      ...(stream ? { onOutput: clipEvents((piece) => emit({ type: 'output', ...piece })) } : {}),
    }
    const before = files && (await takeSnapshot(provider, session, limits))
    const result = await traced('exec', provider.name, () => provider.exec(session, call, limits))
    const about = { request: tenancy.request, session }
    if (result.status === 'failed') {
      log.warn({ ...about, reason: result.reason }, 'code was not run')
      if (result.reason === 'lost') {
        await containers?.dropSession(tenancy, session).catch((err: unknown) => {
          log.warn({ ...about, err }, 'a lost sandbox was not forgotten; whoever names it learns that it is gone')
        })
      }
      return { status: 'failed', reason: result.reason }
    }
    const bounds = { files: settings.outputMaxFiles ?? OUTPUT_FILES, bytes: settings.outputMaxBytes ?? OUTPUT_BYTES }
    const produced = files
      ? await collectProduced({ provider, store: files, bounds }, session, { named: result.files, before }, limits)
      : producedNames(result.files).map((name) => ({ name }))
    log.info({ ...about, returnCode: result.returnCode, files: produced.length }, 'code run')
    return {
      status: 'ok',
      stdout: clipStream(result.stdout),
      stderr: clipStream(result.stderr),
      returnCode: result.returnCode,
      ...(result.limit === undefined ? {} : { limit: result.limit }),
      files: produced,
    }
  }
