/** The documentation as a site: `npm run docs:dev`, `npm run docs:build`, `npm run docs:preview`. */
import { defineConfig } from 'vitepress'
import { copyLinkedFiles, linkFiles } from './files.ts'
import { sidebar } from './sidebar.ts'

export default defineConfig({
  title: 'penstock',
  description: 'A node that moves network traffic through pipelines of components.',
  lang: 'en',
  // Pages are where they are in the repository, so that a link is right in both places.
  srcDir: '..',
  srcExclude: ['{src,test,bench,bin,build,build-sanitize,.ci}/**'],
  rewrites: { 'docs/index.md': 'index.md' },
  cleanUrls: false,
  lastUpdated: false,
  markdown: { config: linkFiles },
  buildEnd: ({ outDir }) => copyLinkedFiles(outDir),
  themeConfig: {
    sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
    nav: [
      { text: 'Tutorial', link: '/docs/tutorial/1-first-pipeline' },
      { text: 'Commands', link: '/docs/commands' },
      { text: 'Components', link: '/docs/components/README' },
      { text: 'API', link: '/docs/api' },
    ],
  },
})
