export type { FetchWorkerSettings } from './settings.ts'
export { type FetchWorkerNeeds, startFetchWorker } from './worker.ts'
