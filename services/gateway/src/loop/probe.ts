import type { ToolEntry } from '../conversation/turn.ts'
import type { CallLimits } from '../models/provider.ts'
import type { ResolvedModel } from '../models/registry.ts'
import { UpstreamFault } from '../models/upstream-fault.ts'
import { plainTurn } from './plain-turn.ts'
import { declarationOfBackend } from './provider-tools.ts'

/** In which company a backend takes a tool of its own. */
export type Form = 'mixed_ok' | 'alone_only' | 'unsupported'

const QUESTION = 'Reply with the word OK.'
const otherTool: ToolEntry = {
  kind: 'function',
  name: 'probe',
  description: 'Does nothing.',
  parameters: { type: 'object', properties: {} },
  raw: {
    type: 'function',
    function: { name: 'probe', description: 'Does nothing.', parameters: { type: 'object', properties: {} } },
  },
}

/** Asks the model twice, with the tool alone and beside a function; what it says is nobody's concern (PE-44). */
export async function probeTool(seat: ResolvedModel, name: string, limits: CallLimits): Promise<Form> {
  const tool = declarationOfBackend(name)
  if (!(await takes(seat, [tool], limits))) return 'unsupported'
  return (await takes(seat, [otherTool, tool], limits)) ? 'mixed_ok' : 'alone_only'
}

/** Only a 400 speaks about the tools; any other failure says nothing and is thrown. */
async function takes({ provider, model }: ResolvedModel, tools: ToolEntry[], limits: CallLimits): Promise<boolean> {
  const turn = plainTurn(model, QUESTION, tools, 1)
  const { messages, toolChoice, parallelToolCalls } = turn
  try {
    const request = { turn, model, messages, tools, toolChoice, parallelToolCalls, stream: false }
    await provider.ask(request, limits, () => undefined)
    return true
  } catch (thrown) {
    if (thrown instanceof UpstreamFault && thrown.upstreamStatus === 400) return false
    throw thrown
  }
}
