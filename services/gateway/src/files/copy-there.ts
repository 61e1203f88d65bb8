import { SpanStatusCode, trace } from '@opentelemetry/api'
import { Fault, type FileReference } from '@tollgate/contracts'
import { type FileStore, workspaceNames } from '@tollgate/files'
import { counter } from '@tollgate/telemetry'
import type { CallLimits, ModelProvider } from '../models/provider.ts'
import type { FileCopy, ProviderFiles, Sendable } from '../models/provider-files.ts'
import { Uncarried } from '../models/uncarried.ts'
import { UpstreamFault } from '../models/upstream-fault.ts'

const AT_ONCE = 4
/** Of a request that ended while a file was sent: how long the provider may still take to say what it is called there. */
const LATE_MS = 5_000

/** Statuses that speak of the file, and not of the account or of the provider's health. */
const ABOUT_THE_FILE: ReadonlySet<number | undefined> = new Set([400, 404, 409, 413, 415, 422])

const tracer = trace.getTracer('@tollgate/gateway')
export const copied = counter(
  'provider_file_copies_total',
  'Short-lived copies of files at providers, by what came of them',
  {
    step: ['put', 'remove'],
    outcome: ['ok', 'refused', 'failed'],
  },
)

export type FilesProvider = ModelProvider & { readonly files: ProviderFiles }

/** What copying the files of one attempt has in common; `note` is told of every copy that there will be. */
export interface Copying {
  store: FileStore
  provider: FilesProvider
  sent: Sendable
  note(work: Promise<FileCopy>): void
}

/** Every file, or none: the first failure ends the others. */
export async function copyThere(
  copying: Copying,
  files: readonly FileReference[],
  { signal, deadline }: CallLimits,
): Promise<FileCopy[]> {
  refuseMany(files, copying.provider)
  const names = workspaceNames(files)
  const copies: FileCopy[] = []
  const ending = new AbortController()
  const end = () => ending.abort()
  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  const waiting = Array.from(files.entries())

  async function lane(): Promise<void> {
    for (let next = waiting.shift(); next !== undefined && !ending.signal.aborted; next = waiting.shift()) {
      const [at, file] = next
      const work = putOne(copying, file, names[at] as string, { signal: ending.signal, deadline })
      copying.note(work)
      copies[at] = await orEnded(work, ending.signal)
    }
  }
  let failure: unknown
  const lanes = Array.from({ length: Math.min(AT_ONCE, files.length) }, () =>
    lane().catch((thrown: unknown) => {
      failure ??= thrown
      end()
    }),
  )
  await Promise.all(lanes)
  signal.removeEventListener('abort', end)
  if (signal.aborted) throw cancelled(failure)
  if (failure !== undefined) throw failure
  return copies
}

const cancelled = (cause?: unknown) => new Fault('cancelled', 'the request was cancelled', { cause })

/** The work, for whoever does not wait for it any more once the signal fires. */
function orEnded<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    work.then(resolve, reject)
    signal.addEventListener('abort', () => reject(cancelled()), { once: true })
    if (signal.aborted) reject(cancelled())
  })
}

function refuseMany(files: readonly FileReference[], { files: { most } }: FilesProvider): void {
  if (files.length > most.files)
    throw new Uncarried(
      'invalid_request',
      `code that this model's provider runs is given at most ${most.files} files, and this request names ${files.length}`,
    )
  const large = files.find(({ bytes }) => bytes > most.bytes)
  if (large) throw new Uncarried('invalid_request', `${called(large)} is larger than this model's provider takes`)
}

async function putOne(
  { store, provider, sent }: Copying,
  file: FileReference,
  name: string,
  { signal, deadline }: CallLimits,
): Promise<FileCopy> {
  const source = readOnce(store, file)
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  // half a file is nothing to the provider; a whole one is there, and its id is needed to remove it
  const end = () => (source.isSent() ? void setTimeout(stop, LATE_MS).unref() : stop())
  signal.addEventListener('abort', end, { once: true })
  const limits = { signal: stopping.signal, deadline }
  const span = tracer.startSpan('copy file to provider', {
    attributes: { 'gen_ai.provider.name': provider.name, 'tollgate.file.bytes': file.bytes },
  })
  try {
    const { mediaType, bytes } = file
    const copy = await provider.files.put({ name, mediaType, bytes, content: source.content() }, sent, limits)
    copied.add(1, { step: 'put', outcome: 'ok' })
    return copy
  } catch (thrown) {
    const refused = thrown instanceof UpstreamFault && ABOUT_THE_FILE.has(thrown.upstreamStatus)
    copied.add(1, { step: 'put', outcome: refused ? 'refused' : 'failed' })
    span.setStatus({ code: SpanStatusCode.ERROR, message: Fault.from(thrown).failure })
    if (refused) throw notTaken(file, thrown)
    throw source.failure() ?? (Date.now() >= limits.deadline ? tooSlow(thrown) : thrown)
  } finally {
    signal.removeEventListener('abort', end)
    span.end()
  }
}

/** FI-16, at a provider. Another candidate may take the file, and this one is no worse for the next request. */
const notTaken = (file: FileReference, cause: unknown): Uncarried =>
  new Uncarried('upstream', `the model provider did not take ${called(file)}`, { cause })

/** How long a copy takes is told by its size: the provider may be as well as ever. */
const tooSlow = (cause: unknown): Uncarried =>
  new Uncarried('timeout', 'the files of the request could not be copied to the model provider in time', { cause })

const called = ({ id, name }: FileReference): string => `the file ${JSON.stringify(name)} (${id})`

/** The bytes of a file, opened when they are first wanted; and why they could not be read, which is no fault of who wanted them. */
function readOnce(store: FileStore, file: FileReference) {
  let failure: unknown
  let sent = false
  const failed = (thrown: unknown): never => {
    failure = thrown
    throw thrown
  }
  return {
    failure: () => failure,
    isSent: () => sent,
    async *content(): AsyncGenerator<Uint8Array> {
      const pieces = (await opened(store, file).catch(failed))[Symbol.asyncIterator]()
      try {
        for (;;) {
          const step = await pieces.next().catch(failed)
          if (step.done) break
          // what is thrown in here is whoever sends them, giving up
          yield step.value
        }
        sent = true
      } finally {
        await pieces.return?.()
      }
    },
  }
}

async function opened(store: FileStore, { id, bytes }: FileReference): Promise<AsyncIterable<Uint8Array>> {
  const stored = await store.get(id)
  if (!stored) throw new Fault('not_found', `File '${id}' not found`)
  if (stored.bytes !== bytes) throw new Error(`file ${id} is not as long as its row says`)
  return stored.content
}
