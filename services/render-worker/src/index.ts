export { findBrowser } from './find-browser.ts'
export type { RenderWorkerSettings } from './settings.ts'
export { type RenderWorkerNeeds, startRenderWorker } from './worker.ts'
