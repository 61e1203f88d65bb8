import { type PageFacts, pageFacts } from '@tollgate/contracts'
import type { Tree } from '../tree.ts'
import { blockFeatures, type Described, describe } from './block-features.ts'
import type { Blocks } from './blocks.ts'
import { chooseLevel } from './choose.ts'
import { type Ensemble, logistic, openEnsemble, type StoredEnsemble } from './ensemble.ts'
import { mend } from './mend.ts'
import { describePage } from './page.ts'
import { pageFeatures } from './page-features.ts'
import type { Structured } from './structured.ts'

export type PageType = NonNullable<PageFacts['pageType']>
export const pageTypes: readonly PageType[] = pageFacts.shape.pageType.unwrap().options

/** What training makes. */
export interface StoredModel {
  blocks: StoredEnsemble
  types: Record<PageType, StoredEnsemble>
}

export interface Model {
  blocks: Ensemble
  types: Record<PageType, Ensemble>
}

export const openModel = ({ blocks, types }: StoredModel): Model => ({
  blocks: openEnsemble(blocks),
  types: Object.fromEntries(pageTypes.map((type) => [type, openEnsemble(types[type])])) as Record<PageType, Ensemble>,
})

export function describeFor(tree: Tree, blocks: Blocks, url: string, structured: Structured): Described {
  const page = describePage(tree, blocks, url)
  return describe(page, structured, pageFeatures(page, structured))
}

/** By block: how likely it is main content. A name that is no block's feature is its page's. */
export function likelyContent(page: Described, { blocks: ensemble }: Model): Float64Array {
  const row = new Float32Array(ensemble.features.length)
  const ofBlocks: { at: number; feature: (page: Described, block: number) => number }[] = []
  for (const [at, name] of ensemble.features.entries()) {
    const feature = blockFeatures.get(name)
    if (feature) ofBlocks.push({ at, feature })
    else row[at] = page.features[name] ?? 0
  }
  const out = new Float64Array(page.blocks.size)
  for (let block = 0; block < out.length; block++) {
    for (const { at, feature } of ofBlocks) row[at] = feature(page, block)
    out[block] = logistic(ensemble.sum(row))
  }
  return out
}

/** How likely the page is of each type; all together 1. */
export function likelyTypes(page: Described, { types }: Model): Record<PageType, number> {
  const each = pageTypes.map((type): [PageType, number] => {
    const ensemble = types[type]
    return [type, logistic(ensemble.sum(Float32Array.from(ensemble.features, (name) => page.features[name] ?? 0)))]
  })
  const sum = each.reduce((all, [, likely]) => all + likely, 1e-9)
  return Object.fromEntries(each.map(([type, likely]) => [type, likely / sum])) as Record<PageType, number>
}

/** By block, 1: it is taken. */
export function takenBlocks(page: Described, likely: Float64Array): Uint8Array {
  const level = chooseLevel(likely, page.blocks.words)
  const taken = Uint8Array.from(likely, (value) => Number(value >= level))
  mend(page, taken)
  return taken
}
