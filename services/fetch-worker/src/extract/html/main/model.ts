import { type Model, openModel } from './look.ts'
import { stored } from './stored-model.ts'

let opened: Model | undefined

/** The model that comes with this project. Opened by whoever first asks for it. */
export function trainedModel(): Model {
  opened ??= openModel(stored)
  return opened
}
