import { SpanStatusCode, trace } from '@opentelemetry/api'
import { Fault, type Tenancy } from '@tollgate/contracts'
import { type FileStore, fileIdTime, mediaTypeOf, SNIFFED_BYTES, toldMediaType } from '@tollgate/files'
import { openDeadline } from '@tollgate/http'
import { counter, type Log } from '@tollgate/telemetry'
import type { AnswerEvent } from '../conversation/events.ts'
import type { MadeFile, ProviderFiles } from '../models/provider-files.ts'
import type { FileClaims } from './claims.ts'
import { fileName } from './file-name.ts'
import type { FileRows } from './rows.ts'
import { toolFiles } from './tool-files.ts'

/** Names that an answer is read for; one that names more is not to be believed. */
const MOST_NAMED = 100

const tracer = trace.getTracer('@tollgate/gateway')
const kept = counter('provider_files_kept_total', 'Files that code made at providers, by what came of them here', {
  outcome: ['kept', 'known', 'left_out', 'failed'],
})

/** The files that a provider's code makes for one answer, copied into our store under the provider's own ids (FI-23). */
export interface ProviderOutputs {
  /** Begins to copy what the event names, if it names anything. */
  hear(event: AnswerEvent): void
  /** Resolves when everything is copied that can be: what cannot is missing, and the answer stands (FI-22). */
  done(): Promise<void>
  /** Nothing more is copied. */
  end(): void
}

export interface OutputNeeds {
  store: FileStore
  rows: FileRows
  claims: FileClaims
  log: Log
  files: ProviderFiles
  /** For the whole answer (FI-22). */
  most: { files: number; bytes: number }
  /** What copying them may take in all (FI-23). */
  timeoutMs: number
  /** A container that the client named: others may have left files there, so only what the answer names is copied. */
  container: string | undefined
  tenancy: Tenancy
  signal: AbortSignal
  deadline: number
}

export function collectOutputs(needs: OutputNeeds): ProviderOutputs {
  const { store, rows, claims, log, files, most, tenancy, signal } = needs
  const ending = new AbortController()
  const end = () => ending.abort()
  signal.addEventListener('abort', end, { once: true })
  const seen = new Set<string>()
  const containers = new Set<string>()
  let left = { ms: needs.timeoutMs, ...most }
  let copying = Promise.resolve()

  /** One after the other, so that what is left of each bound is known before the next begins. */
  function want(file: MadeFile): void {
    if (seen.has(file.id) || seen.size >= MOST_NAMED) return
    seen.add(file.id)
    copying = copying.then(() => within((until) => inTurn(file, until), file.id))
  }

  /** Work within the time that is left. It never throws: the run it belongs to stands. */
  async function within(work: (until: number) => Promise<Outcome>, what: string): Promise<void> {
    if (ending.signal.aborted) return
    const began = Date.now()
    const span = tracer.startSpan('copy file from provider')
    try {
      if (left.ms <= 0) throw new Fault('timeout', 'no time is left to copy files')
      const outcome = await work(Math.min(began + left.ms, needs.deadline))
      if (outcome) kept.add(1, { outcome })
      if (outcome === 'left_out')
        log.warn({ request: tenancy.request, file: what }, 'a file that a provider’s code made is left out')
    } catch (err) {
      kept.add(1, { outcome: 'failed' })
      span.setStatus({ code: SpanStatusCode.ERROR, message: Fault.from(err).failure })
      log.warn({ request: tenancy.request, file: what, err }, 'a file that a provider’s code made could not be copied')
    } finally {
      span.end()
      left = { ...left, ms: left.ms - (Date.now() - began) }
    }
  }

  /** Other answers may name the file too, at this gateway and at others: who comes later finds it here. */
  const inTurn = (file: MadeFile, until: number): Promise<Outcome> =>
    claims.hold(file.id, until, ending.signal, () => copy(file, until))

  async function copy(made: MadeFile, until: number): Promise<Outcome> {
    const { id } = made
    // an id of our own form, or one that stands here already, would put the bytes of somebody's file in another's place
    if (fileIdTime(id) !== undefined) return 'left_out'
    if ((await rows.unknown([id])).length === 0) return 'known'
    if (left.files <= 0 || left.bytes <= 0) return 'left_out'
    const clock = openDeadline(until, ending.signal)
    try {
      const { name, mediaType, bytes, content } = await files.get(made, { signal: ending.signal, deadline: until })
      if (bytes !== undefined && (bytes > left.bytes || bytes === 0)) return 'left_out'
      const peeked = peek(content)
      const stored = await store.put(id, peeked.content, { maxBytes: left.bytes, signal: clock.signal })
      if (stored.bytes === 0) return 'left_out'
      const filename = fileName(name)
      const file = {
        id,
        name: filename,
        mediaType: typeOf(filename, peeked.beginning(), mediaType),
        bytes: stored.bytes,
      }
      const given = await toolFiles(rows, [], log).keep([file], tenancy)
      if (!given.has(id)) return 'failed'
      left = { ...left, files: left.files - 1, bytes: left.bytes - stored.bytes }
      return 'kept'
    } catch (thrown) {
      if (thrown instanceof Fault && thrown.failure === 'too_large') return 'left_out'
      throw thrown
    } finally {
      clock.end()
    }
  }

  async function lookInto(container: string, until: number): Promise<Outcome> {
    const found = (await files.list?.(container, { signal: ending.signal, deadline: until })) ?? []
    for (const file of found) want(file)
    return undefined
  }

  return {
    hear(event) {
      if (event.type === 'tool' || event.type === 'container') return
      for (const made of files.namedIn(event)) {
        if (made.type === 'file') want(made)
        else if (files.list && made.id !== needs.container && containers.size < MOST_NAMED) containers.add(made.id)
      }
    },
    async done() {
      await copying
      for (const container of containers) await within((until) => lookInto(container, until), container)
      await copying
    },
    end() {
      signal.removeEventListener('abort', end)
      end()
    },
  }
}

/** Undefined: there was nothing to copy. */
type Outcome = 'kept' | 'known' | 'left_out' | 'failed' | undefined

/** FI-26, and as the provider says where neither the name nor the first bytes tell. */
function typeOf(name: string, beginning: Uint8Array, told: string | undefined): string {
  const found = mediaTypeOf(name, beginning)
  return found === 'application/octet-stream' ? (toldMediaType(told) ?? found) : found
}

/** Content as it is read, and its first bytes. */
function peek(source: AsyncIterable<Uint8Array>) {
  let beginning = Buffer.alloc(0)
  async function* read(): AsyncGenerator<Uint8Array> {
    for await (const piece of source) {
      if (beginning.length < SNIFFED_BYTES)
        beginning = Buffer.concat([beginning, piece.subarray(0, SNIFFED_BYTES - beginning.length)])
      yield piece
    }
  }
  return { content: read(), beginning: () => beginning }
}
