package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// objects are all objects of the files.
type objects struct {
	pods     map[string]core.PodTemplateSpec // by the workload's name
	owned    map[string]*meta.LabelSelector  // each workload's selector for its pods
	services []core.Service
	budgets  []policy.PodDisruptionBudget
	policies []networking.NetworkPolicy
	settings map[string]bool // ConfigMaps and Secrets, by kind and name
	monitors []monitoring.PodMonitor
}

func newObjects() objects {
	return objects{pods: map[string]core.PodTemplateSpec{}, owned: map[string]*meta.LabelSelector{}, settings: map[string]bool{}}
}

var separator = regexp.MustCompile(`(?m)^---\n`)

// judgeKubernetes decodes the objects strictly and follows every reference between them:
// selectors, names of ports, of volumes and of ConfigMaps.
func judgeKubernetes(files []string) (wrong []string) {
	all := newObjects()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return []string{err.Error()}
		}
		for i, document := range separator.Split(string(text), -1) {
			if err := all.add([]byte(document)); err != nil {
				wrong = append(wrong, fmt.Sprintf("%s, object %d: %v", file, i+1, err))
			}
		}
	}
	return append(wrong, all.judge()...)
}

// add decodes one object. An unknown field or a value of the wrong type is an error, as it
// is for the API server with strict validation.
func (o *objects) add(document []byte) error {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return err
	}
	strictly := func(into any) error {
		return yaml.UnmarshalStrict(bytes.TrimSpace(document), into)
	}
	switch kind.APIVersion + " " + kind.Kind {
	case "apps/v1 StatefulSet":
		var set apps.StatefulSet
		err := strictly(&set)
		o.pods[set.Name], o.owned[set.Name] = set.Spec.Template, set.Spec.Selector
		return err
	case "apps/v1 Deployment":
		var deployment apps.Deployment
		err := strictly(&deployment)
		o.pods[deployment.Name], o.owned[deployment.Name] = deployment.Spec.Template, deployment.Spec.Selector
		return err
	case "v1 Service":
		var service core.Service
		err := strictly(&service)
		o.services = append(o.services, service)
		return err
	case "policy/v1 PodDisruptionBudget":
		var budget policy.PodDisruptionBudget
		err := strictly(&budget)
		o.budgets = append(o.budgets, budget)
		return err
	case "networking.k8s.io/v1 NetworkPolicy":
		var rule networking.NetworkPolicy
		err := strictly(&rule)
		o.policies = append(o.policies, rule)
		return err
	case "v1 ConfigMap":
		var settings core.ConfigMap
		err := strictly(&settings)
		o.settings["ConfigMap "+settings.Name] = true
		return err
	case "v1 Secret":
		var settings core.Secret
		err := strictly(&settings)
		o.settings["Secret "+settings.Name] = true
		return err
	case "monitoring.coreos.com/v1 PodMonitor":
		var monitor monitoring.PodMonitor
		err := strictly(&monitor)
		o.monitors = append(o.monitors, monitor)
		return err
	case "monitoring.coreos.com/v1 PrometheusRule":
		return strictly(&monitoring.PrometheusRule{})
	}
	return fmt.Errorf("%s %s is not known here", kind.APIVersion, kind.Kind)
}

func (o *objects) judge() (wrong []string) {
	complain := func(format string, values ...any) { wrong = append(wrong, fmt.Sprintf(format, values...)) }
	for name, pod := range o.pods {
		if !selects(o.owned[name], pod) {
			complain("%s does not select its own pods", name)
		}
		for _, text := range o.judgePod(pod.Spec) {
			complain("%s: %s", name, text)
		}
	}
	for _, service := range o.services {
		chosen := o.chosen(&meta.LabelSelector{MatchLabels: service.Spec.Selector})
		if len(chosen) == 0 {
			complain("service %s selects no pod", service.Name)
		}
		for _, port := range service.Spec.Ports {
			for _, pod := range chosen {
				if !hasPort(pod.Spec, port.TargetPort) {
					complain("service %s: no pod has the port %s", service.Name, port.TargetPort.String())
				}
			}
		}
	}
	for _, budget := range o.budgets {
		if len(o.chosen(budget.Spec.Selector)) == 0 {
			complain("disruption budget %s selects no pod", budget.Name)
		}
	}
	for _, monitor := range o.monitors {
		chosen := o.chosen(&monitor.Spec.Selector)
		if len(chosen) == 0 {
			complain("pod monitor %s selects no pod", monitor.Name)
		}
		for _, endpoint := range monitor.Spec.PodMetricsEndpoints {
			for _, pod := range chosen {
				if endpoint.Port == nil || !hasPort(pod.Spec, intstr.FromString(*endpoint.Port)) {
					complain("pod monitor %s: no pod has its port", monitor.Name)
				}
			}
		}
	}
	for _, rule := range o.policies {
		chosen := o.chosen(&rule.Spec.PodSelector)
		if len(chosen) == 0 {
			complain("network policy %s selects no pod", rule.Name)
		}
		for _, ingress := range rule.Spec.Ingress {
			for _, peer := range ingress.From {
				if peer.NamespaceSelector == nil && len(o.chosen(peer.PodSelector)) == 0 {
					complain("network policy %s lets nobody in", rule.Name)
				}
			}
			for _, port := range ingress.Ports {
				for _, pod := range chosen {
					if port.EndPort == nil && !hasPort(pod.Spec, *port.Port) {
						complain("network policy %s: no pod has the port %s", rule.Name, port.Port.String())
					}
				}
			}
		}
	}
	for name, pod := range o.pods {
		for _, container := range containers(pod.Spec) {
			for _, port := range container.Ports {
				if port.Name == "admin" && o.open(pod, port) {
					complain("everybody reaches the admin port of %s", name)
				}
			}
		}
	}
	return wrong
}

// open tells whether every pod of the cluster may reach this port.
func (o *objects) open(pod core.PodTemplateSpec, port core.ContainerPort) bool {
	governed := false
	for _, rule := range o.policies {
		if !selects(&rule.Spec.PodSelector, pod) {
			continue
		}
		governed = true
		for _, ingress := range rule.Spec.Ingress {
			if len(ingress.From) == 0 && (len(ingress.Ports) == 0 || slices.ContainsFunc(ingress.Ports, func(p networking.NetworkPolicyPort) bool { return covers(p, port) })) {
				return true
			}
		}
	}
	return !governed
}

// covers tells whether a rule of a policy is about this TCP port.
func covers(rule networking.NetworkPolicyPort, port core.ContainerPort) bool {
	switch {
	case rule.Protocol != nil && *rule.Protocol != core.ProtocolTCP:
		return false
	case rule.Port == nil:
		return true
	case rule.Port.Type == intstr.String:
		return rule.Port.StrVal == port.Name
	}
	last := rule.Port.IntVal
	if rule.EndPort != nil {
		last = *rule.EndPort
	}
	return rule.Port.IntVal <= port.ContainerPort && port.ContainerPort <= last
}

// judgePod checks the references within a pod.
func (o *objects) judgePod(pod core.PodSpec) (wrong []string) {
	complain := func(format string, values ...any) { wrong = append(wrong, fmt.Sprintf(format, values...)) }
	volumes := map[string]bool{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = true
		if volume.ConfigMap != nil {
			if !o.settings["ConfigMap "+volume.ConfigMap.Name] {
				complain("there is no ConfigMap %s", volume.ConfigMap.Name)
			}
		}
		if volume.Secret != nil && !o.settings["Secret "+volume.Secret.SecretName] {
			complain("there is no Secret %s", volume.Secret.SecretName)
		}
	}
	for _, container := range containers(pod) {
		for _, mount := range container.VolumeMounts {
			if !volumes[mount.Name] {
				complain("%s mounts %s, which is no volume", container.Name, mount.Name)
			}
		}
		for _, probe := range []*core.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
			if probe == nil {
				continue
			}
			if probe.HTTPGet != nil && !hasPort(pod, probe.HTTPGet.Port) || probe.TCPSocket != nil && !hasPort(pod, probe.TCPSocket.Port) {
				complain("%s is probed at a port that it does not have", container.Name)
			}
		}
		if limits := container.Resources.Limits; limits.Memory().IsZero() {
			complain("%s may use all memory of its node", container.Name)
		}
		if confined := container.SecurityContext; confined == nil || confined.AllowPrivilegeEscalation == nil || *confined.AllowPrivilegeEscalation {
			complain("%s is not confined", container.Name)
		}
	}
	return wrong
}

func containers(pod core.PodSpec) []core.Container {
	return append(append([]core.Container{}, pod.InitContainers...), pod.Containers...)
}

func hasPort(pod core.PodSpec, port intstr.IntOrString) bool {
	for _, container := range containers(pod) {
		for _, has := range container.Ports {
			if has.Name == port.StrVal || has.ContainerPort == port.IntVal {
				return true
			}
		}
	}
	return false
}

// chosen returns the pods that a selector selects.
func (o *objects) chosen(selector *meta.LabelSelector) (chosen []core.PodTemplateSpec) {
	for _, pod := range o.pods {
		if selects(selector, pod) {
			chosen = append(chosen, pod)
		}
	}
	return chosen
}

// selects returns false for a selector that selects every pod, or none.
func selects(selector *meta.LabelSelector, pod core.PodTemplateSpec) bool {
	meant, err := meta.LabelSelectorAsSelector(selector)
	return err == nil && !meant.Empty() && meant.Matches(labels.Set(pod.Labels))
}
