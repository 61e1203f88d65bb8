import { extract } from './extract.ts'
import type { Extracted, ExtractJob } from './job.ts'
import { loadPdfium } from './pdf/pdfium.ts'

export type Task = { warm: 'html' | 'pdf' } | { job: ExtractJob }

/** The thread's one function. `warm` loads what a kind of body needs, so that no body's time is spent on it. */
export default async function work(task: Task): Promise<Extracted | undefined> {
  if ('job' in task) return extract(task.job)
  if (task.warm === 'pdf') await loadPdfium()
  return undefined
}
