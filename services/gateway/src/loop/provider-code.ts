import type { Tenancy } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { AnswerEvent } from '../conversation/events.ts'
import type { Attachments, Files } from '../files/attachments.ts'
import type { FilesProvider } from '../files/copy-there.ts'
import { declaredFileIds, withoutDeclaredFiles } from '../files/declared.ts'
import type { ProviderCopies } from '../files/provider-copies.ts'
import { collectOutputs, type ProviderOutputs } from '../files/provider-outputs.ts'
import type { CodePlace } from '../files/show.ts'
import type { CallLimits, ModelProvider } from '../models/provider.ts'
import { Uncarried } from '../models/uncarried.ts'
import type { GatewaySettings } from '../settings.ts'
import { codeExecution } from '../tools/code-execution.ts'
import { containerOf } from './declarations.ts'
import type { Plan } from './plan.ts'

interface Needs {
  settings: Pick<GatewaySettings, 'filesOutputMaxFiles' | 'filesOutputMaxBytes' | 'providerFilesTimeoutMs'>
  files?: Files | undefined
  providerCopies?: ProviderCopies | undefined
  log: Log
}

interface Request {
  attachments?: Attachments | undefined
  tenancy: Tenancy
  signal: AbortSignal
  deadline: number
}

/** The files of one request, where the provider runs its code: they follow it from attempt to attempt. */
export interface ProviderCode {
  /** What an attempt sends; of one whose code runs at the provider, with the attachments where that code finds them (FI-24). */
  given(plan: Plan, provider: ModelProvider, at: CallLimits): Promise<Plan>
  /** What goes out of the answer: files that it names are copied from here on (FI-23). */
  hear(event: AnswerEvent): void
  /** Resolves once they are, or their time is over. */
  done(): Promise<void>
  close(): void
}

/** Whether an attempt's files are copied to its provider and back. */
export const copiesFiles = ({ codeAtProvider }: Plan, provider: ModelProvider): provider is FilesProvider =>
  codeAtProvider === true && provider.files !== undefined

/** Where an attempt's code runs that is given the files. */
export function codePlaceOf(plan: Plan, provider: ModelProvider): CodePlace {
  if (plan.owned.has(codeExecution.name)) return 'here'
  return copiesFiles(plan, provider) ? 'provider' : undefined
}

export function openProviderCode(
  { settings, files, providerCopies, log }: Needs,
  { attachments, tenancy, signal, deadline }: Request,
): ProviderCode {
  const copies = providerCopies?.of(tenancy.request)
  let attempt: { plan: Plan; provider: FilesProvider } | undefined
  let outputs: ProviderOutputs | undefined

  return {
    async given(plan, provider, at) {
      attempt = undefined
      if (!copies || !copiesFiles(plan, provider)) {
        if (plan.codeAtProvider) refuseDeclared(plan)
        return plan
      }
      attempt = { plan, provider }
      const named = attachments?.files ?? []
      if (named.length === 0) return plan
      const sent = { ...plan, tools: plan.tools.map(withoutDeclaredFiles) }
      const until = Math.min(at.deadline, Date.now() + settings.providerFilesTimeoutMs)
      return copies.attach(sent, named, provider, { signal: at.signal, deadline: until })
    },
    hear(event) {
      if (!files || !attempt) return
      outputs ??= collectOutputs({
        ...files,
        log,
        files: attempt.provider.files,
        most: { files: settings.filesOutputMaxFiles, bytes: settings.filesOutputMaxBytes },
        timeoutMs: settings.providerFilesTimeoutMs,
        container: containerNamed(attempt.plan),
        tenancy,
        signal,
        deadline,
      })
      outputs.hear(event)
    },
    done: async () => outputs?.done(),
    close() {
      outputs?.end()
      copies?.remove()
    },
  }
}

/** An id of ours means nothing to a provider that is given no copies. */
function refuseDeclared({ tools }: Plan): void {
  const [id] = tools.flatMap(declaredFileIds)
  if (id === undefined) return
  throw new Uncarried('invalid_request', `The file '${id}' cannot be given to code that this model's provider runs`)
}

function containerNamed({ turn }: Plan): string | undefined {
  const wish = containerOf(turn)
  return wish.kind === 'id' ? wish.id : undefined
}
