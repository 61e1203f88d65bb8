export * from './log.ts'
export {
  type Counter,
  counter,
  type Histogram,
  histogram,
  type Label,
  type Labels,
  observe,
  SECONDS,
  upTo,
} from './metrics.ts'
export * from './start.ts'
