export { type SandboxBrokerNeeds, startSandboxBroker } from './broker.ts'
export type { SandboxBrokerSettings } from './settings.ts'
