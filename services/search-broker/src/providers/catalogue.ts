import { brave } from './brave.ts'
import { deepseek } from './deepseek.ts'
import { exa } from './exa.ts'
import { mojeek } from './mojeek.ts'
import type { SearchProvider } from './provider.ts'
import { searxng } from './searxng.ts'
import { tavily } from './tavily.ts'

/** Every provider there is an adapter for. A further one is a file beside this and a line here. */
export const providers: readonly SearchProvider[] = [brave, deepseek, exa, mojeek, searxng, tavily]

export const findProvider = (id: string): SearchProvider | undefined => providers.find((provider) => provider.id === id)
