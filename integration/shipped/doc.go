// Package shipped tests the files that are delivered. Each program must accept its files in
// deploy/. Alerts and the dashboard must use metrics that exist. The licences must be
// complete. The tests, files and headings that the documents name must exist.
package shipped
