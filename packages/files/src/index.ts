export * from './local.ts'
export type * from './store.ts'
