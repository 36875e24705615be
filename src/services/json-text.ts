/** The reader of JSON texts, for the layers that know no data plane. */
export { readJson } from '../dataplane/engine/json-text.ts'
