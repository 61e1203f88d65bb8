import type { Wire } from '../conversation/turn.ts'
import { type ChatQuirks, openAiItself, plainChat } from './openai-chat/quirks.ts'

/** Whose model it is, as far as its own tools differ. Claude on another cloud is not `anthropic`. */
export type Vendor = 'anthropic' | 'openai' | 'deepseek' | 'gemini' | 'other'

/** What the deployment need not say about a provider that is known here by its name. */
export interface Preset {
  /** The wires it speaks, that which serves every other dialect first. */
  wires: readonly [Wire, ...Wire[]]
  /** Where its API begins; a compatible server has no address of its own. */
  base: string | undefined
  /** A vendor's service answers nobody without one. */
  needsKey: boolean
  vendor: Vendor
  /** How its Chat Completions differ from what every server takes. */
  chat?: ChatQuirks
}

const vendor = (preset: Partial<Preset> & Pick<Preset, 'base'>): Preset => ({
  wires: ['openai-chat'],
  needsKey: true,
  vendor: 'other',
  ...preset,
})
const compatible = (wire: Wire): Preset => ({ wires: [wire], base: undefined, needsKey: false, vendor: 'other' })

export const presets = {
  openai: vendor({
    wires: ['openai-chat', 'openai-responses'],
    base: 'https://api.openai.com/v1',
    vendor: 'openai',
    chat: openAiItself,
  }),
  anthropic: vendor({ wires: ['anthropic'], base: 'https://api.anthropic.com', vendor: 'anthropic' }),
  gemini: vendor({ wires: ['gemini'], base: 'https://generativelanguage.googleapis.com/v1beta', vendor: 'gemini' }),
  deepseek: vendor({
    base: 'https://api.deepseek.com',
    vendor: 'deepseek',
    // the newer name of the limit counts for nothing there, and its roles are these four: system, user, assistant, tool
    chat: { ...plainChat, oldTokenLimitOnly: true, developerRole: false },
  }),
  mistral: vendor({
    base: 'https://api.mistral.ai/v1',
    // any member that it does not know is a 422, `stream_options` among them; its streams count their tokens unasked
    chat: {
      ...plainChat,
      oldTokenLimitOnly: true,
      streamOptions: false,
      developerRole: false,
      reasoningContent: false,
    },
  }),
  groq: vendor({
    base: 'https://api.groq.com/openai/v1',
    // an assistant message with `reasoning_content` is a 400
    chat: { ...plainChat, reasoningContent: false },
  }),
  together: vendor({ base: 'https://api.together.ai/v1' }),
  ollama: { ...compatible('openai-chat'), base: 'http://localhost:11434/v1' },
  vllm: { ...compatible('openai-chat'), base: 'http://localhost:8000/v1' },
  'openai-compatible': compatible('openai-chat'),
  'openai-responses': compatible('openai-responses'),
  'anthropic-compatible': compatible('anthropic'),
} satisfies Record<string, Preset>

export type ProviderType = keyof typeof presets

export const presetOf = (type: ProviderType): Preset => presets[type]

export const providerTypes = Object.keys(presets) as ProviderType[]

/** An instance that is named for a preset with an address of its own needs no type. */
export const typeNamed = (name: string): ProviderType | undefined =>
  providerTypes.find((type) => type === name && presets[type].base !== undefined)

/** A compatible server is a vendor's own where its instance bears the vendor's name. */
export function vendorOf(name: string, type: ProviderType | 'demo'): Vendor {
  if (type === 'demo') return 'other'
  const { vendor: own, base } = presetOf(type)
  if (own !== 'other' || base !== undefined) return own
  return namesakes.find((one) => one === name) ?? 'other'
}

/** Vendors whose other doors are reached as compatible servers. */
const namesakes: readonly Vendor[] = ['deepseek', 'gemini']
