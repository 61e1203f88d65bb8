import { deepseek } from './deepseek.ts'
import { exaContents } from './exa.ts'
import type { FetchProvider } from './provider.ts'
import { tabstack } from './tabstack.ts'

/** Every fetch provider there is an adapter for (SP-02). A further one is a file beside this and a line here. */
export const fetchProviders: readonly FetchProvider[] = [deepseek, exaContents, tabstack]

export const findFetchProvider = (id: string): FetchProvider | undefined =>
  fetchProviders.find((provider) => provider.id === id)
