export { type SearchBrokerNeeds, startSearchBroker } from './broker.ts'
export type { LegacySettings, SearchBounds, SearchSettings, SearchToolSettings, ToolEntry } from './settings.ts'
