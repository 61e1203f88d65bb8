import type { Handler } from '@tollgate/bus'
import { Fault, type sandboxClose, type sandboxExec, type sandboxOpen } from '@tollgate/contracts'
import type { FileStore } from '@tollgate/files'
import type { Log } from '@tollgate/telemetry'
import { clipStream } from './limits.ts'
import { producedNames, storeProduced, takeSnapshot } from './produced.ts'
import type { Provider, Refusal } from './provider.ts'
import type { SandboxBrokerSettings } from './settings.ts'
import { traced } from './traced.ts'

/** Fixed texts that reach the client. */
const UNREACHABLE =
  "code_execution sandbox unreachable. Check the sandbox URL in the dashboard's Tools settings, or OTARI_SANDBOX_URL, and that the container is running."
const AT_CAPACITY = 'code_execution sandbox temporarily unavailable. Retry later.'

/** CFG-34 */
const OUTPUT_FILES = 20
const OUTPUT_BYTES = 100 * 1024 * 1024

interface SessionNeeds {
  provider: Provider
  settings: SandboxBrokerSettings
  /** Without it produced files are named and stay in the sandbox. */
  files: FileStore | undefined
  log: Log
}

/** Leases a session. At capacity is not tried again here (CP-23); whatever else went wrong is the backend's failure. */
export const openSession =
  ({ provider, settings, log }: SessionNeeds): Handler<typeof sandboxOpen> =>
  async ({ tenancy, image = settings.sessionImage }, { signal, deadline }) => {
    const pinned = image !== undefined && provider.capabilities.images
    if (image !== undefined && !pinned) log.info({ provider: provider.name }, 'the provider takes no session image')
    const opened = await traced('create', provider.name, () =>
      provider.create(pinned ? { image } : {}, { signal, deadline }),
    )
    if (opened.status === 'failed') {
      log.warn({ request: tenancy.request, reason: opened.reason }, 'no sandbox session was leased')
      throw unopened(opened)
    }
    const { session, isolation } = opened
    log.info({ request: tenancy.request, session, isolation }, 'sandbox session leased')
    return { session, ...(isolation === undefined ? {} : { isolation }) }
  }

function unopened(refusal: Refusal): Fault {
  if (refusal.reason !== 'busy') return new Fault('upstream', UNREACHABLE)
  const { retryAfterSeconds } = refusal
  return new Fault('unavailable', AT_CAPACITY, retryAfterSeconds === undefined ? {} : { retryAfterSeconds })
}

/** Runs one piece of code. A program that fails is an answer like any other (CP-13); only its sandbox can fail. */
export const execInSession =
  ({ provider, settings, files, log }: SessionNeeds): Handler<typeof sandboxExec> =>
  async ({ tenancy, session, kind, code, timeoutSeconds }, { signal, deadline, emit }) => {
    emit({ type: 'running' })
    const limits = { signal, deadline }
    const call = { kind, code, timeoutSeconds: Math.min(timeoutSeconds, settings.execTimeoutSeconds) }
    const before = files && (await takeSnapshot(provider, session, limits))
    const result = await traced('exec', provider.name, () => provider.exec(session, call, limits))
    const about = { request: tenancy.request, session }
    if (result.status === 'failed') {
      log.warn({ ...about, reason: result.reason }, 'code was not run')
      return { status: 'failed', reason: result.reason }
    }
    const after = before && (await takeSnapshot(provider, session, limits))
    const names = producedNames(result.files, before, after)
    const bounds = { files: settings.outputMaxFiles ?? OUTPUT_FILES, bytes: settings.outputMaxBytes ?? OUTPUT_BYTES }
    const produced = files
      ? await storeProduced({ provider, store: files, bounds }, session, names, limits)
      : names.map((name) => ({ name }))
    log.info({ ...about, returnCode: result.returnCode, files: produced.length }, 'code run')
    return {
      status: 'ok',
      stdout: clipStream(result.stdout),
      stderr: clipStream(result.stderr),
      returnCode: result.returnCode,
      files: produced,
    }
  }

/** A session that cannot be released will be reclaimed by its backend: nobody's request fails for it (CP-15). */
export const closeSession =
  ({ provider, log }: SessionNeeds): Handler<typeof sandboxClose> =>
  async ({ tenancy, session }, { signal, deadline }) => {
    const released = await traced('destroy', provider.name, () => provider.destroy(session, { signal, deadline }))
    const about = { request: tenancy.request, session }
    if (released.status === 'failed') log.warn({ ...about, reason: released.reason }, 'the session was not released')
    else log.info(about, 'sandbox session released')
    return {}
  }
