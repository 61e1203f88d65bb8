export { type SandboxBrokerNeeds, startSandboxBroker } from './broker.ts'
export type { FileSource } from './seed.ts'
export type { SandboxBrokerSettings } from './settings.ts'
