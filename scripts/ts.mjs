import { register } from 'node:module'

// Node 22.18 and later run TypeScript as it is; an older one gets a loader that takes the types out.
if (!process.features.typescript) {
  process.setSourceMapsEnabled(true)
  register('./ts-hooks.mjs', import.meta.url)
}
