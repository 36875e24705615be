/** The YAML library, loaded where it is needed: a node that is configured by flags alone, and most commands, never read any. */
import { requirePackage } from '../require-package.ts'

export const yaml = () => requirePackage('yaml') as typeof import('yaml')
